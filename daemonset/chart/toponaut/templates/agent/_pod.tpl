{{- /* Whether nodes with the RuntimeClass have DaemonSets of their own; takes the root. */}}
{{- define "toponaut.splitsGpuNodes" -}}
{{- if and .Values.agent.runtimeClassName .Values.agent.runtimeClassNodes }}true{{ end }}
{{- end }}

{{- /* The affinity of a DaemonSet: that of the values, and one agent per node. Takes root, sweeps and
       gpu. A term selects a node if all of its expressions do; so each group of alternatives is
       multiplied into the terms. */}}
{{- define "toponaut.agentAffinity" -}}
{{- $values := .root.Values }}
{{- $groups := list }}
{{- if and $values.sweep.enabled (not .sweeps) }}
  {{- $others := list }}
  {{- range $key, $value := $values.sweep.nodeSelector }}
    {{- $others = append $others (dict "key" $key "operator" "NotIn" "values" (list $value)) }}
  {{- end }}
  {{- $groups = append $groups $others }}
{{- end }}
{{- if include "toponaut.splitsGpuNodes" .root }}
  {{- $opposites := dict "In" "NotIn" "NotIn" "In" "Exists" "DoesNotExist" "DoesNotExist" "Exists" }}
  {{- $others := list }}
  {{- range $values.agent.runtimeClassNodes }}
    {{- if $.gpu }}{{ $groups = append $groups (list .) }}{{ end }}
    {{- $others = append $others (merge (dict "operator" (get $opposites .operator)) .) }}
  {{- end }}
  {{- if not .gpu }}{{ $groups = append $groups $others }}{{ end }}
{{- end }}
{{- $affinity := $values.agent.affinity | default dict }}
{{- $given := dig "nodeAffinity" "requiredDuringSchedulingIgnoredDuringExecution" "nodeSelectorTerms" list $affinity }}
{{- $terms := $given | default (list dict) }}
{{- range $group := $groups }}
  {{- $products := list }}
  {{- range $term := $terms }}
    {{- range $group }}
      {{- $expressions := append ($term.matchExpressions | default list) . }}
      {{- $products = append $products (merge (dict "matchExpressions" $expressions) $term) }}
    {{- end }}
  {{- end }}
  {{- $terms = $products }}
{{- end }}
{{- if or $given $groups }}
  {{- $required := dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) }}
  {{- $affinity = merge (dict "nodeAffinity" $required) $affinity }}
{{- end }}
{{- with $affinity }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* A DaemonSet of agents. Takes root; sweeps: whether they may sweep; and gpu: whether they are for
       the nodes that alone have the RuntimeClass. docs/install.md shows the modes and privileges as
       a table. */}}
{{- define "toponaut.agent" }}
{{- $root := .root }}
{{- $agent := .root.Values.agent }}
{{- $hearsFrames := eq $agent.mode "frames" }}
{{- $asksLldpd := eq $agent.mode "lldpd" }}
{{- $isPrivileged := and .sweeps $root.Values.sweep.privileged }}
{{- $mine := .sweeps | ternary $root.Values.sweep $agent }}
{{- $needsRoot := or $hearsFrames .sweeps }}
{{- $runtimeClass := or .gpu (not (include "toponaut.splitsGpuNodes" $root)) | ternary $agent.runtimeClassName "" }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: toponaut-{{ .sweeps | ternary "sweeper" "agent" }}{{ if .gpu }}-gpu{{ end }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "toponaut.labels" $root | nindent 4 }}
    app.kubernetes.io/component: agent
spec:
  selector:
    matchLabels:
      {{- include "toponaut.agentSelector" . | nindent 6 }}
  revisionHistoryLimit: 10
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 0
      maxUnavailable: {{ $agent.maxUnavailable }}
  template:
    metadata:
      labels:
        {{- include "toponaut.agentSelector" . | nindent 8 }}
      {{- with $agent.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: toponaut-agent
      automountServiceAccountToken: false
      enableServiceLinks: false
      priorityClassName: {{ $agent.priorityClass.name }}
      terminationGracePeriodSeconds: 15
      {{- include "toponaut.podDefaults" . | nindent 6 }}
      {{- with $runtimeClass }}
      runtimeClassName: {{ . }}
      {{- end }}
      {{- if $hearsFrames }}
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      {{- else }}
      dnsPolicy: ClusterFirst
      {{- end }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with merge (dict) (.sweeps | ternary $root.Values.sweep.nodeSelector (dict)) ($agent.nodeSelector | default dict) }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with include "toponaut.agentAffinity" . }}
      affinity:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with $agent.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- if $needsRoot }}
        # File capabilities need privilege escalation, and root owns the devices.
        runAsUser: 0
        {{- else }}
        {{- include "toponaut.unprivileged" $root | nindent 8 }}
        {{- end }}
        {{- if $asksLldpd }}
        supplementalGroups: [{{ include "toponaut.lldpdGroups" $root }}]
        {{- end }}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: agent
          image: {{ include "toponaut.image" (list $root ($hearsFrames | ternary "agent-frames" "agent")) | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args:
            - run
            - --kube
            - --sysfs-root={{ $hearsFrames | ternary "/sys" "/host/sys" }}
            - --period={{ $agent.period }}
            - --frames={{ $hearsFrames | ternary "always" "never" }}
            {{- if $asksLldpd }}
            - --lldpd-socket=/run/lldpd/{{ $agent.lldpd.socket }}
            {{- end }}
            - --nvlink={{ $agent.runtimeClassName | empty | ternary "never" "auto" }}
            - --sweep={{ .sweeps | ternary "elected" "never" }}
            - --metrics-listen=:{{ $agent.metricsPort | int }}
            - --health-listen={{ $hearsFrames | ternary "127.0.0.1" "" }}:{{ $agent.healthPort | int }}
            {{- range $mine.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          env:
            - name: NODE_NAME
              valueFrom:
                fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}
            {{- if $runtimeClass }}
            - {name: NVIDIA_VISIBLE_DEVICES, value: all}
            - {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
            {{- end }}
          ports:
            - {name: metrics, containerPort: {{ $agent.metricsPort | int }}, protocol: TCP}
          {{- include "toponaut.containerDefaults" . | nindent 10 }}
          {{- include "toponaut.probes" (dict "port" ($agent.healthPort | int) "host" ($hearsFrames | ternary "127.0.0.1" "")) | trim | nindent 10 }}
          {{- $resources := deepCopy ($mine.resources | default dict) }}
          {{- with and .sweeps $root.Values.sweep.deviceResource }}
          {{- $resources = merge (dict "limits" (dict . "1")) $resources }}
          {{- end }}
          resources:
            {{- toYaml $resources | nindent 12 }}
          securityContext:
            {{- if $isPrivileged }}
            # The only access to a device without a device plugin.
            privileged: true
            readOnlyRootFilesystem: true
            {{- else }}
            {{- include "toponaut.lockedDown" . | nindent 12 }}
              {{- if $hearsFrames }}
              add: [NET_RAW]
              {{- end }}
            {{- end }}
            {{- with $agent.seLinuxOptions }}
            seLinuxOptions:
              {{- toYaml . | nindent 14 }}
            {{- end }}
          volumeMounts:
            {{- include "toponaut.tokenMount" . | nindent 12 }}
            {{- if not $hearsFrames }}
            - {name: sys, mountPath: /host/sys, readOnly: true}
            {{- end }}
            {{- if $asksLldpd }}
            - {name: lldpd, mountPath: /run/lldpd, readOnly: true}
            {{- end }}
            {{- if $isPrivileged }}
            - {name: infiniband, mountPath: /dev/infiniband}
            {{- end }}
      volumes:
        {{- include "toponaut.tokenVolume" . | nindent 8 }}
        {{- if not $hearsFrames }}
        # Shows the node's network. A pod's own /sys shows the pod's network.
        - {name: sys, hostPath: {path: /sys, type: Directory}}
        {{- end }}
        {{- if $asksLldpd }}
        - {name: lldpd, hostPath: {path: {{ $agent.lldpd.socketDir }}, type: DirectoryOrCreate}}
        {{- end }}
        {{- if $isPrivileged }}
        - {name: infiniband, hostPath: {path: /dev/infiniband, type: Directory}}
        {{- end }}
{{- end }}
