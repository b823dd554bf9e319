import { documentedValues, type Values } from '../../../testkit/chart.ts';

const documented = documentedValues();
const identity = (role: string) => ({
  serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': `arn:aws:iam::123456789012:role/holdfast-${role}` } },
});
const secret = (name: string, key: string) => ({ name, key });

/** Values whose output must follow all rules. Together they use every template and every branch. */
export const valueSets: Readonly<Record<string, Values>> = {
  documented,
  'everything behind an ingress': {
    ...documented,
    image: { repository: 'registry.example/holdfast', digest: `sha256:${'a'.repeat(64)}` },
    imagePullSecrets: [{ name: 'registry' }],
    s3: { bucket: 'holdfast', endpoint: 'http://s3.storage:9000' },
    settings: {
      ...{ HOLDFAST_ENCRYPT_DOCUMENTS: true, HOLDFAST_MAX_BODY_BYTES: 2_147_483_648, HOLDFAST_LOG_LEVEL: 'warn' },
      HOLDFAST_BUNDLE_URL: 's3://holdfast-bundle/acme',
    },
    secrets: {
      ownerDatabaseUrl: secret('holdfast-owner', 'url'),
      databaseReplicaUrl: secret('holdfast-replica', 'url'),
      awsAccessKeyId: secret('holdfast-s3', 'id'),
      awsSecretAccessKey: secret('holdfast-s3', 'secret'),
      vaultToken: secret('holdfast-vault', 'token'),
      auditExportUrl: secret('holdfast-audit', 'url'),
      auditExportToken: secret('holdfast-audit', 'token'),
      bundlePassphrase: secret('holdfast-bundle', 'passphrase'),
      bootstrap: secret('holdfast-bootstrap', 'file.yaml'),
    },
    externalSecrets: {
      enabled: true,
      store: { name: 'vault' },
      remote: {
        databaseUrl: { key: 'prod/holdfast', property: 'databaseUrl' },
        awsAccessKeyId: { key: 'prod/holdfast', property: 'accessKeyId' },
        awsSecretAccessKey: { key: 'prod/holdfast', property: 'secretAccessKey' },
      },
    },
    pod: {
      annotations: { 'example.com/team': 'platform' },
      labels: { 'azure.workload.identity/use': 'true' },
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ key: 'ci', operator: 'Exists', effect: 'NoSchedule' }],
      affinity: { nodeAffinity: {} },
      priorityClassName: 'high',
      extraEnv: [{ name: 'NODE_OPTIONS', value: '--report-on-fatalerror' }],
      extraVolumes: [{ name: 'authorities', configMap: { name: 'authorities' } }],
      extraVolumeMounts: [{ name: 'authorities', mountPath: '/etc/authorities', readOnly: true }],
    },
    api: identity('api'),
    worker: { ...identity('worker'), keda: { enabled: true } },
    migrate: { ...identity('migrate'), appRole: 'holdfast_app' },
    createBucket: { ...identity('create-bucket'), enabled: true },
    web: { enabled: true },
    networkPolicy: {
      ingress: {
        clients: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' } } }],
      },
      egress: {
        postgres: { ports: [5432, 6432], to: [{ ipBlock: { cidr: '10.1.0.0/16' } }] },
        instanceMetadata: true,
        extra: [{ to: [{ ipBlock: { cidr: '10.2.0.9/32' } }], ports: [{ protocol: 'TCP', port: 8200 }] }],
      },
    },
    metrics: {
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      prometheusRule: { enabled: true },
      grafanaDashboards: { enabled: true },
    },
  },
  'a gateway, with one process of each role': {
    s3: { bucket: 'holdfast' },
    trustedProxies: '10.0.0.0/8, fd00::/8',
    ipv6: true,
    httpRoute: {
      enabled: true,
      parentRefs: [{ name: 'public', namespace: 'gateways', sectionName: 'https' }],
      hostnames: ['pulumi.example.com'],
    },
    api: { replicas: 1, autoscaling: { enabled: false }, serviceAccount: { create: false, name: 'existing' } },
    worker: { replicas: 1, autoscaling: { enabled: false }, serviceAccount: { create: false } },
    migrate: { enabled: false },
    web: { enabled: true },
    networkPolicy: { enabled: false },
  },
  'no way in of its own, and other names': {
    fullnameOverride: 'state-backend',
    s3: { bucket: 'holdfast' },
    publicUrl: 'https://pulumi.example.com',
    networkPolicy: { ingress: { monitoring: [] } },
  },
};
