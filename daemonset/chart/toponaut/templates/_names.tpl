{{- /* Labels that select the pods of a component (agent, generator). */}}
{{- define "toponaut.selector" -}}
app.kubernetes.io/name: toponaut
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- /* Labels that select the agents of a DaemonSet; takes sweeps and gpu. A selector cannot change
       later, and no two may select the same pods. */}}
{{- define "toponaut.agentSelector" -}}
{{ include "toponaut.selector" "agent" }}
toponaut.io/{{ if .gpu }}gpu-{{ end }}sweeps: {{ .sweeps | quote }}
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

{{- /* Annotations of what is kept when it is no longer rendered: by Helm, Argo CD and Flux. */}}
{{- define "toponaut.kept" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false,Delete=false
kustomize.toolkit.fluxcd.io/prune: disabled
{{- end }}

{{- /* The image of a program, by its digest if that is given: some runtimes refuse a tag beside it.
       Takes a list of the root and the program. */}}
{{- define "toponaut.image" -}}
{{- $image := (first .).Values.image -}}
{{ $image.registry }}/{{ last . }}
{{- with get ($image.digests | default dict) (last .) }}@{{ . }}
{{- else }}:{{ $image.tag | default (first .).Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The label by which policies find the ClusterRoleBinding of an account; takes the component. */}}
{{- define "toponaut.account" -}}
toponaut.io/account: {{ . }}
{{- end }}

{{- /* Whom a policy limits: the subjects of the ClusterRoleBinding that gives the component its role. So
       the policy follows the account to any namespace and name that kustomize or a person gives it,
       and it limits no other account of this name. Takes the component. Errors here would refuse the
       writes of everybody, so fields are checked before they are read. */}}
{{- define "toponaut.subjects" -}}
paramKind:
  apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
matchConditions:
  - name: {{ . }}
    expression: >-
      params != null && has(params.subjects) && params.subjects.exists(one,
      one.kind == 'ServiceAccount' ? request.userInfo.username
      == 'system:serviceaccount:' + one.namespace + ':' + one.name
      : one.kind == 'Group' ? has(request.userInfo.groups) && one.name in request.userInfo.groups
      : one.name == request.userInfo.username)
{{- end }}

{{- /* The binding of a policy; takes root, name and component. Without the ClusterRoleBinding its
       account has no rights, and refusing then would refuse the writes of everybody. */}}
{{- define "toponaut.policyBinding" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "toponaut.labels" .root | nindent 4 }}
spec:
  policyName: {{ .name }}
  paramRef:
    selector:
      matchLabels:
        {{- include "toponaut.account" .component | nindent 8 }}
    parameterNotFoundAction: Allow
  validationActions: [Deny]
{{- end }}

{{- /* The types of the outputs that the generator may write, one per line; takes the root. */}}
{{- define "toponaut.outputs" -}}
{{- $types := .Values.generator.outputs | default list -}}
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
