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

{{- /* The types of the outputs that the generator may write, one per line; takes the root. */}}
{{- define "toponaut.outputs" -}}
{{- $types := .Values.generator.outputs -}}
{{- range (.Values.fabric.spec).outputs }}{{ $types = append $types .type }}{{ end -}}
{{- $types | uniq | sortAlpha | join "\n" -}}
{{- end }}

{{- /* Prefixes of the label keys that the generator may write, as a list in CEL; takes the root. */}}
{{- define "toponaut.labelPrefixes" -}}
{{- $keys := list "toponaut.io/" "topology.toponaut.io/" "fabric.topograph.run/tier-" "network.topology.nvidia.com/" -}}
{{- range .Values.generator.labelPrefixes }}{{ $keys = append $keys (printf "%s/" .) }}{{ end -}}
{{- range (.Values.fabric.spec).outputs }}{{ with .labelPrefix }}{{ $keys = append $keys (printf "%s/" .) }}{{ end }}{{ end -}}
['{{ $keys | uniq | join "', '" }}']
{{- end }}
