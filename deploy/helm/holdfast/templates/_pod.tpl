{{/* `pod` of a role: that of all roles, with the entries of the role. */}}
{{- define "holdfast.podValues" -}}
{{- $role := index .root.Values (include "holdfast.roleKey" .role) -}}
{{- mergeOverwrite (deepCopy .root.Values.pod) (deepCopy (default dict $role.pod)) | toYaml -}}
{{- end -}}

{{/*
A pod of a role: (dict "root" $ "role" "api" "args" list "ports" dict "probes" yaml "graceSeconds" 130).
No volume holds data: bodies are streamed, and the root file system is read-only.
*/}}
{{- define "holdfast.pod" -}}
{{- $role := index .root.Values (include "holdfast.roleKey" .role) -}}
{{- $pod := include "holdfast.podValues" . | fromYaml -}}
{{- $isWeb := eq .role "web" -}}
{{- $hasSocket := has .role (list "api" "worker") -}}
{{- $bootstrap := .root.Values.secrets.bootstrap -}}
{{- $hasBootstrap := and (eq .role "api") $bootstrap.name -}}
metadata:
  labels:
    {{- include "holdfast.labels" . | nindent 4 }}
    {{- with $pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- $annotations := deepCopy (default dict $pod.annotations) }}
  {{- if and .metricsPort (not .root.Values.metrics.serviceMonitor.enabled) }}
  {{- $annotations = mergeOverwrite (dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .metricsPort)) $annotations }}
  {{- end }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "holdfast.serviceAccount" . }}
  automountServiceAccountToken: false
  # Variables that name services would begin with HOLDFAST_ too.
  enableServiceLinks: false
  {{- with .graceSeconds }}
  terminationGracePeriodSeconds: {{ . }}
  {{- end }}
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pod.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: {{ .role }}
      image: {{ include "holdfast.image" . }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      {{- with .args }}
      args:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      env:
        {{- if $isWeb }}
        - { name: WEB_PORT, value: '8080' }
        {{- if .root.Values.ipv6 }}
        - { name: WEB_BIND, value: '[::]' }
        {{- end }}
        - { name: XDG_CONFIG_HOME, value: /tmp/config }
        - { name: XDG_DATA_HOME, value: /tmp/data }
        {{- else }}
        {{- include "holdfast.env" . | trim | nindent 8 }}
        {{- end }}
        {{- with $pod.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .ports }}
      ports:
        {{- range $name, $port := . }}
        - { name: {{ $name }}, containerPort: {{ $port }} }
        {{- end }}
      {{- end }}
      {{- with .probes }}
      {{- . | nindent 6 }}
      {{- end }}
      resources:
        {{- toYaml $role.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        {{- if $isWeb }}
        # The program file requires the capability to start, although its port does not.
        capabilities: { drop: [ALL], add: [NET_BIND_SERVICE] }
        {{- else }}
        capabilities: { drop: [ALL] }
        {{- end }}
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
        {{- if $hasSocket }}
        # For `holdfast debug`.
        - { name: sockets, mountPath: /data/run }
        {{- end }}
        {{- if $hasBootstrap }}
        - { name: bootstrap, mountPath: /etc/holdfast/bootstrap, readOnly: true }
        {{- end }}
        {{- with $pod.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: { sizeLimit: 64Mi }
    {{- if $hasSocket }}
    - name: sockets
      emptyDir: { sizeLimit: 1Mi }
    {{- end }}
    {{- if $hasBootstrap }}
    - name: bootstrap
      secret:
        secretName: {{ $bootstrap.name }}
        items: [{ key: {{ $bootstrap.key }}, path: file }]
    {{- end }}
    {{- with $pod.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if not .restartPolicy }}
  topologySpreadConstraints:
    {{- if $pod.topologySpreadConstraints }}
    {{- toYaml $pod.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "holdfast.selector" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
  {{- end }}
  {{- with $pod.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pod.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pod.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* A Deployment of a role: as for a pod, with "maxUnavailable" during a roll-out and "scaled" if its replicas are not ours. */}}
{{- define "holdfast.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "holdfast.metadata" . | nindent 2 }}
spec:
  {{- if not .scaled }}
  replicas: {{ (index .root.Values .role).replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxUnavailable: {{ .maxUnavailable }}, maxSurge: 1 }
  selector:
    matchLabels:
      {{- include "holdfast.selector" . | nindent 6 }}
  template:
    {{- include "holdfast.pod" . | nindent 4 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "holdfast.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  # A node can be drained although a pod of it does not become ready.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "holdfast.selector" . | nindent 6 }}
{{- end -}}

{{- define "holdfast.autoscaler" -}}
{{- $scaling := (index .root.Values .role).autoscaling -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "holdfast.metadata" . | nindent 2 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ include "holdfast.fullname" .root }}-{{ .role }} }
  minReplicas: {{ $scaling.minReplicas }}
  maxReplicas: {{ $scaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: {{ $scaling.targetCPUUtilizationPercentage }} }
  behavior:
    scaleDown: { stabilizationWindowSeconds: 300 }
{{- end -}}

{{- define "holdfast.accountOf" -}}
{{- $account := (index .root.Values (include "holdfast.roleKey" .role)).serviceAccount -}}
{{- if $account.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "holdfast.serviceAccount" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "holdfast.labels" . | nindent 4 }}
  {{- with mergeOverwrite (default dict .hooks) $account.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end -}}
{{- end -}}
