{{- /* The DaemonSet of agents and that of sweepers. Takes root, and sweeps: whether it is the
       latter. docs/install.md shows the modes and privileges as a table. */}}
{{- define "toponaut.agent" }}
{{- $root := .root }}
{{- $agent := .root.Values.agent }}
{{- $hearsFrames := eq $agent.mode "frames" }}
{{- $asksLldpd := eq $agent.mode "lldpd" }}
{{- $isPrivileged := and .sweeps $root.Values.sweep.privileged }}
{{- $mine := .sweeps | ternary $root.Values.sweep $agent }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: toponaut-{{ .sweeps | ternary "sweeper" "agent" }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "toponaut.labels" $root | nindent 4 }}
    app.kubernetes.io/component: agent
spec:
  selector:
    matchLabels:
      {{- include "toponaut.agentSelector" .sweeps | nindent 6 }}
  updateStrategy:
    rollingUpdate:
      maxUnavailable: {{ $agent.maxUnavailable }}
  template:
    metadata:
      labels:
        {{- include "toponaut.agentSelector" .sweeps | nindent 8 }}
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
      {{- with $agent.runtimeClassName }}
      runtimeClassName: {{ . }}
      {{- end }}
      {{- if $hearsFrames }}
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      {{- end }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with merge (dict) (.sweeps | ternary $root.Values.sweep.nodeSelector (dict)) $agent.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if and $root.Values.sweep.enabled (not .sweeps) }}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            # One agent per node: none on nodes that have all labels of the sweepers.
            nodeSelectorTerms:
              {{- range $key, $value := $root.Values.sweep.nodeSelector }}
              - matchExpressions:
                  - {key: {{ $key }}, operator: NotIn, values: [{{ $value | quote }}]}
              {{- end }}
      {{- end }}
      {{- with $agent.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- if or $hearsFrames .sweeps }}
        # File capabilities need privilege escalation, and root owns the devices.
        runAsUser: 0
        {{- else }}
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        {{- end }}
        {{- if $asksLldpd }}
        supplementalGroups: [{{ $agent.lldpd.gid | int }}]
        {{- end }}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: agent
          image: {{ include "toponaut.image" (list $root ($hearsFrames | ternary "agent-frames" "agent")) }}
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
            - --sweep={{ .sweeps | ternary "elected" "never" }}
            - --metrics-listen=:{{ $agent.metricsPort | int }}
            - --health-listen={{ $hearsFrames | ternary "127.0.0.1" "" }}:{{ $agent.healthPort | int }}
            {{- range $mine.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          env:
            - name: NODE_NAME
              valueFrom:
                fieldRef: {fieldPath: spec.nodeName}
            {{- if $agent.runtimeClassName }}
            - {name: NVIDIA_VISIBLE_DEVICES, value: all}
            - {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
            {{- end }}
          ports:
            - {name: metrics, containerPort: {{ $agent.metricsPort | int }}}
          {{- include "toponaut.probes" (dict "port" ($agent.healthPort | int) "host" ($hearsFrames | ternary "127.0.0.1" "")) | trim | nindent 10 }}
          {{- $resources := deepCopy $mine.resources }}
          {{- with and .sweeps $root.Values.sweep.deviceResource }}
          {{- $resources = merge (dict "limits" (dict . 1)) $resources }}
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
