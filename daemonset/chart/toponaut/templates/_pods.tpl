{{- /* A token that expires after an hour and with its pod, and that contains the pod's node. */}}
{{- define "toponaut.tokenVolume" -}}
- name: token
  projected:
    defaultMode: 0444
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - {key: ca.crt, path: ca.crt}
      - downwardAPI:
          items:
            - path: namespace
              fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}
{{- end }}

{{- define "toponaut.tokenMount" -}}
- name: token
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end }}

{{- /* HTTP probes; takes the port, and the host, which is empty for the pod's own address. */}}
{{- define "toponaut.probes" -}}
{{- range $probe, $path := dict "startup" "/startupz" "liveness" "/livez" "readiness" "/readyz" }}
{{ $probe }}Probe:
  httpGet:
    path: {{ $path }}
    port: {{ $.port }}
    scheme: HTTP
    {{- with $.host }}
    host: {{ . }}
    {{- end }}
  periodSeconds: {{ eq $probe "liveness" | ternary 30 10 }}
  timeoutSeconds: 5
  successThreshold: 1
  failureThreshold: {{ eq $probe "startup" | ternary 60 3 }}
{{- end }}
{{- end }}

{{- define "toponaut.lockedDown" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Defaults of the API server. They are written out, here and elsewhere, so that tools that compare
       the chart with the cluster, such as Argo CD, see no difference. */}}
{{- define "toponaut.podDefaults" -}}
restartPolicy: Always
schedulerName: default-scheduler
{{- end }}

{{- define "toponaut.containerDefaults" -}}
terminationMessagePath: /dev/termination-log
terminationMessagePolicy: File
{{- end }}

{{- /* The user of pods that need no root. OpenShift gives them one of the namespace's range. */}}
{{- define "toponaut.unprivileged" -}}
runAsNonRoot: true
{{- if not .Values.openshift.enabled }}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
{{- end }}

{{- /* The groups of lldpd's socket, as `1, 2`. */}}
{{- define "toponaut.lldpdGroups" -}}
{{- $gid := .Values.agent.lldpd.gid }}
{{- $groups := list }}
{{- range kindIs "slice" $gid | ternary $gid (list $gid) }}{{ $groups = append $groups (int64 .) }}{{ end -}}
{{ $groups | join ", " }}
{{- end }}
