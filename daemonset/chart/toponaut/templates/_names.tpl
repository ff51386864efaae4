{{- /* Labels that select the pods of a component (agent, generator). */}}
{{- define "toponaut.selector" -}}
app.kubernetes.io/name: toponaut
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- /* Labels that select the agents of a DaemonSet; takes whether they may sweep. */}}
{{- define "toponaut.agentSelector" -}}
{{ include "toponaut.selector" "agent" }}
toponaut.io/sweeps: {{ . | quote }}
{{- end }}

{{- /* Labels of every object; takes the root. */}}
{{- define "toponaut.labels" -}}
app.kubernetes.io/name: toponaut
app.kubernetes.io/part-of: toponaut
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The image of a program; takes a list of the root and the program. */}}
{{- define "toponaut.image" -}}
{{- $root := first . -}}
{{ $root.Values.image.registry }}/{{ last . }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end }}

{{- /* User name of a service account at the API server; takes a list of the root and the component. */}}
{{- define "toponaut.user" -}}
system:serviceaccount:{{ (first .).Release.Namespace }}:toponaut-{{ last . }}
{{- end }}
