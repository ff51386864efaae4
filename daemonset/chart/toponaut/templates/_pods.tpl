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
              fieldRef: {fieldPath: metadata.namespace}
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
    {{- with $.host }}
    host: {{ . }}
    {{- end }}
  periodSeconds: {{ eq $probe "liveness" | ternary 30 10 }}
  timeoutSeconds: 5
  failureThreshold: {{ eq $probe "startup" | ternary 60 3 }}
{{- end }}
{{- end }}

{{- define "toponaut.lockedDown" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
