{{- define "gristmill.labels" -}}
app.kubernetes.io/name: gristmill
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gristmill.metadata" -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "gristmill.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* gristmill.toml. JSON's texts, numbers and lists are TOML's, too. */ -}}
{{- define "gristmill.settings" -}}
{{- $root := .root -}}
data_dir = "/data"
store = {{ $root.Values.store.url | toJson }}
hash_key_file = "/run/gristmill/hash-key/hash-key"
listen = "0.0.0.0:8080"
grpc_listen = "0.0.0.0:8082"
admin_listen = "{{ ternary "0.0.0.0" "127.0.0.1" $root.Values.admin.enabled }}:8081"
metrics_listen = "0.0.0.0:9090"
{{- if $root.Values.tls.secret }}
tls_certificate = "/run/gristmill/tls/tls.crt"
tls_key = "/run/gristmill/tls/tls.key"
{{- end }}
shutdown_delay_s = {{ $root.Values.shutdown.delaySeconds }}
drain_timeout_s = {{ $root.Values.shutdown.drainSeconds }}
{{- range $key, $value := mergeOverwrite (dict "log_format" "json") $root.Values.settings .settings }}
{{ $key }} = {{ $value | toJson }}
{{- end }}
{{- range $name, $store := $root.Values.stores }}

[stores.{{ $name | toJson }}]
{{- with $store.passwordSecret }}
password_file = {{ printf "/run/gristmill/stores/%s" $name | toJson }}
{{- end }}
{{- range $key, $value := omit $store "passwordSecret" }}
{{ $key }} = {{ $value | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The passwords of stores, each a file with the store's name. */ -}}
{{- define "gristmill.passwords" -}}
{{- range $name, $store := .Values.stores }}
{{- with $store.passwordSecret }}
- secret: { name: {{ . | quote }}, items: [{ key: password, path: {{ $name | quote }} }] }
{{- end }}
{{- end }}
{{- end }}

{{- define "gristmill.image" -}}
{{- $image := .root.Values.image -}}
{{- $digest := .digest | default (ternary "" $image.digest (ne .tag "")) -}}
{{- if $digest -}}
{{ $image.repository }}@{{ $digest }}
{{- else -}}
{{ $image.repository }}:{{ .tag | default $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "gristmill.deployment" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $scheme := ternary "HTTPS" "HTTP" (ne $values.tls.secret "") -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  {{- include "gristmill.metadata" $root | nindent 2 }}
spec:
  {{- with .replicas }}
  replicas: {{ . }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "gristmill.labels" $root | nindent 6 }}
      gristmill/track: {{ .track }}
  strategy:
    rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }
  template:
    metadata:
      labels:
        {{- include "gristmill.labels" $root | nindent 8 }}
        gristmill/track: {{ .track }}
      annotations:
        # A change of the settings rolls the servers.
        gristmill/settings: {{ include "gristmill.settings" . | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- with $values.serviceAccountName }}
      serviceAccountName: {{ . }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      # shutdown_delay_s, drain_timeout_s, and some seconds for usage, traces and the log. There is
      # no preStop: it would wait for what shutdown_delay_s waits for.
      terminationGracePeriodSeconds: {{ add $values.shutdown.delaySeconds $values.shutdown.drainSeconds 10 }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        seccompProfile: { type: RuntimeDefault }
      topologySpreadConstraints:
        {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "gristmill.labels" $root | nindent 14 }}
        {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: gristmill
          image: {{ include "gristmill.image" . | quote }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args: ["serve", "--config", "/etc/gristmill/gristmill.toml"]
          env:
            - name: GRISTMILL_REPLICA_NAME
              valueFrom: { fieldRef: { fieldPath: metadata.name } }
            - name: GRISTMILL_ADMIN_TOKEN
              valueFrom: { secretKeyRef: { name: {{ $values.secrets.adminToken }}, key: admin-token } }
            {{- range $name, $value := $values.store.env }}
            - name: {{ $name }}
              value: {{ $value | quote }}
            {{- end }}
          {{- with $values.store.credentialsSecret }}
          envFrom:
            - secretRef: { name: {{ . }} }
          {{- end }}
          ports:
            - { name: http, containerPort: 8080 }
            - { name: grpc, containerPort: 8082 }
            - { name: metrics, containerPort: 9090 }
            {{- if $values.admin.enabled }}
            - { name: admin, containerPort: 8081 }
            {{- end }}
          # The ports answer at once. The state may load for long: readiness alone watches it.
          startupProbe:
            httpGet: { path: /livez, port: http, scheme: {{ $scheme }} }
            periodSeconds: 1
            failureThreshold: 60
          livenessProbe:
            httpGet: { path: /livez, port: http, scheme: {{ $scheme }} }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: { path: /readyz, port: http, scheme: {{ $scheme }} }
            periodSeconds: 2
            timeoutSeconds: 2
            # One slow answer of a busy server does not send its load to the others.
            failureThreshold: 3
          {{- $resources := deepCopy $values.resources }}
          {{- if $values.gpu.count }}
          {{- $resources = mergeOverwrite $resources (dict "limits" (dict $values.gpu.resource $values.gpu.count)) }}
          {{- end }}
          {{- with $resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          volumeMounts:
            - { name: settings, mountPath: /etc/gristmill, readOnly: true }
            - { name: hash-key, mountPath: /run/gristmill/hash-key, readOnly: true }
            {{- if $values.tls.secret }}
            - { name: tls, mountPath: /run/gristmill/tls, readOnly: true }
            {{- end }}
            {{- if include "gristmill.passwords" $root }}
            - { name: passwords, mountPath: /run/gristmill/stores, readOnly: true }
            {{- end }}
            - { name: data, mountPath: /data }
            - { name: tmp, mountPath: /tmp }
      volumes:
        - name: settings
          configMap: { name: {{ .name }} }
        - name: hash-key
          secret: { secretName: {{ $values.secrets.hashKey }}, defaultMode: 0440 }
        {{- with $values.tls.secret }}
        - name: tls
          secret: { secretName: {{ . }}, defaultMode: 0440 }
        {{- end }}
        {{- with include "gristmill.passwords" $root }}
        - name: passwords
          projected:
            defaultMode: 0440
            sources:
              {{- trim . | nindent 14 }}
        {{- end }}
        # Copies of the store and compiled code: a new pod makes them again.
        - name: data
          emptyDir: {}
        - name: tmp
          emptyDir: {}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  {{- include "gristmill.metadata" $root | nindent 2 }}
data:
  gristmill.toml: |
    {{- include "gristmill.settings" . | nindent 4 }}
{{- end }}
