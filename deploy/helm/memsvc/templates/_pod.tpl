{{/* The pod of the hub, the same for both kinds of store. */}}
{{- define "memsvc.pod" -}}
metadata:
  labels:
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- include "memsvc.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/part-of: memsvc
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # The hub reads its settings once, so that new ones need a new pod.
    checksum/config: {{ include "memsvc.config" . | sha256sum }}
    kubectl.kubernetes.io/default-container: memsvc
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "memsvc.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "memsvc.grace" . }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if eq .Values.store "postgres" }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "memsvc.selectorLabels" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  {{- with .Values.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: memsvc
      image: {{ include "memsvc.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        - --config=/etc/memsvc/config.yaml
        {{- with .Values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if or (eq .Values.store "postgres") .Values.extraEnv }}
      env:
        {{- if eq .Values.store "postgres" }}
        {{- include "memsvc.databaseEnv" . | nindent 8 }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: grpc, containerPort: 7420, protocol: TCP}
        - {name: http, containerPort: 7421, protocol: TCP}
        - {name: ops, containerPort: 7422, protocol: TCP}
      startupProbe:
        {{- toYaml .Values.startupProbe | nindent 8 }}
      livenessProbe:
        {{- toYaml .Values.livenessProbe | nindent 8 }}
      readinessProbe:
        {{- toYaml .Values.readinessProbe | nindent 8 }}
      {{- if .Values.preStopSeconds }}
      lifecycle:
        preStop:
          sleep:
            seconds: {{ .Values.preStopSeconds }}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/memsvc/config.yaml, subPath: config.yaml, readOnly: true}
        {{- if eq .Values.store "embedded" }}
        - {name: data, mountPath: /var/lib/memsvc}
        {{- end }}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.identity }}
        - {name: identity, mountPath: /etc/memsvc/identity, readOnly: true}
        {{- end }}
        {{- if .Values.clusterIssuer }}
        - {name: cluster, mountPath: /etc/memsvc/cluster, readOnly: true}
        {{- end }}
        {{- if ne .Values.tls.mode "none" }}
        - {name: tls, mountPath: /etc/memsvc/tls, readOnly: true}
        {{- end }}
        {{- if .Values.tls.clientCA.secretName }}
        - {name: client-ca, mountPath: /etc/memsvc/client-ca, readOnly: true}
        {{- end }}
        {{- if and (eq .Values.store "postgres") .Values.postgres.caSecret.name }}
        - {name: database-ca, mountPath: /etc/memsvc/database, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "memsvc.fullname" . }}
    - name: tmp # archives on their way; nothing in it outlives a call
      emptyDir: {}
    {{- if .Values.identity }}
    - name: identity # as a directory, so that a change arrives
      configMap:
        name: {{ include "memsvc.fullname" . }}-identity
    {{- end }}
    {{- if .Values.clusterIssuer }}
    - name: cluster
      projected:
        defaultMode: 0440
        sources:
          - serviceAccountToken: {path: token, expirationSeconds: 3600}
          - configMap:
              name: kube-root-ca.crt
              items: [{key: ca.crt, path: ca.crt}]
    {{- end }}
    {{- if eq .Values.store "postgres" }}
    {{- else if not .Values.embedded.persistence.enabled }}
    - name: data
      emptyDir: {}
    {{- else if .Values.embedded.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.embedded.persistence.existingClaim }}
    {{- end }}
    {{- if ne .Values.tls.mode "none" }}
    - name: tls
      secret:
        secretName: {{ include "memsvc.tlsSecretName" . }}
        defaultMode: 0440
        items:
          - {key: tls.crt, path: tls.crt}
          - {key: tls.key, path: tls.key}
    {{- end }}
    {{- if .Values.tls.clientCA.secretName }}
    - name: client-ca
      secret:
        secretName: {{ .Values.tls.clientCA.secretName }}
        defaultMode: 0440
        items:
          - {key: {{ .Values.tls.clientCA.key | quote }}, path: {{ .Values.tls.clientCA.key | quote }}}
    {{- end }}
    {{- if and (eq .Values.store "postgres") .Values.postgres.caSecret.name }}
    {{- include "memsvc.databaseCAVolume" . | nindent 4 }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
