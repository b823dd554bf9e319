import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import {
  chartFolder,
  documentedValues,
  type Manifest,
  parseManifests,
  renderChart,
  type Values,
} from '../../testkit/chart.ts';
import { describeWithTools } from '../support/tools.ts';
import { valueSets } from './support/value-sets.ts';

const documented = documentedValues();
const named = ({ kind, metadata }: Manifest): string => `${kind}/${metadata.name}`;

/** Expected parts of objects by kind and name; null: there is no such object. */
type Expected = Readonly<Record<string, object | null>>;

const container = (part: object) => ({ spec: { template: { spec: { containers: [expect.objectContaining(part)] } } } });
const environment = (...entries: object[]) => container({ env: expect.arrayContaining(entries) });
const peers = (...peers: object[]) => peers;

/** Values in addition to the documented ones, and what follows from them. */
const table: readonly (readonly [string, Values, Expected])[] = [
  [
    'the default: API replicas serve the web UI, and workers and replicas scale by their load',
    {},
    {
      'Deployment/holdfast-api': container({
        image: 'registry.example.com/holdfast:0.1.0',
        args: ['api'],
      }),
      'Deployment/holdfast-web': null,
      'HorizontalPodAutoscaler/holdfast-api': { spec: { minReplicas: 3 } },
      'HorizontalPodAutoscaler/holdfast-worker': { spec: { minReplicas: 2 } },
      'ScaledObject/holdfast-worker': null,
      'Job/holdfast-create-bucket': null,
      'Ingress/holdfast': { spec: { rules: [{ http: { paths: [expect.objectContaining({ path: '/' })] } }] } },
      'ServiceMonitor/holdfast': null,
      'PrometheusRule/holdfast': null,
    },
  ],
  [
    'the public URL follows from the host of the ingress, with TLS',
    {},
    { 'Deployment/holdfast-api': environment({ name: 'HOLDFAST_PUBLIC_URL', value: 'https://holdfast.example' }) },
  ],
  [
    'in a cluster with IPv6 only, each port is open on IPv6',
    { ipv6: true, web: { enabled: true } },
    {
      'Deployment/holdfast-api': environment(
        { name: 'HOLDFAST_LISTEN', value: '[::]:9090' },
        { name: 'HOLDFAST_MANAGEMENT_LISTEN', value: '[::]:9092' },
      ),
      'Deployment/holdfast-worker': environment({ name: 'HOLDFAST_MANAGEMENT_LISTEN', value: '[::]:9092' }),
      'Deployment/holdfast-web': environment({ name: 'WEB_BIND', value: '[::]' }),
    },
  ],
  [
    'the public URL may be another one',
    { publicUrl: 'https://pulumi.example.com:8443' },
    {
      'Deployment/holdfast-worker': environment({
        name: 'HOLDFAST_PUBLIC_URL',
        value: 'https://pulumi.example.com:8443',
      }),
    },
  ],
  [
    'an ingress has a class and TLS, and what nginx needs for large bodies',
    {},
    {
      'Ingress/holdfast': {
        metadata: { annotations: { 'nginx.ingress.kubernetes.io/proxy-body-size': '0' } },
        spec: { ingressClassName: 'nginx', tls: [{ hosts: ['holdfast.example'], secretName: 'holdfast-tls' }] },
      },
    },
  ],
  [
    'nginx speaks TLS to pods that do',
    { settings: { HOLDFAST_TLS_CERT_FILE: '/tls/tls.crt', HOLDFAST_TLS_KEY_FILE: '/tls/tls.key' } },
    {
      'Ingress/holdfast': {
        metadata: { annotations: { 'nginx.ingress.kubernetes.io/backend-protocol': 'HTTPS' } },
      },
    },
  ],
  [
    'an ingress of another class has only its own annotations',
    { ingress: { ...(documented['ingress'] as object), className: 'traefik', annotations: { a: 'b' } } },
    { 'Ingress/holdfast': { metadata: { annotations: { a: 'b' } }, spec: { ingressClassName: 'traefik' } } },
  ],
  [
    'a route of the Gateway API sets no time limit',
    valueSets['a gateway, with one process of each role'] as Values,
    {
      'HTTPRoute/holdfast': {
        spec: { hostnames: ['pulumi.example.com'], rules: Array(3).fill({ timeouts: { request: '0s' } }) },
      },
      'Deployment/holdfast-api': { spec: { replicas: 1 } },
      'ServiceAccount/holdfast-api': null,
      'NetworkPolicy/holdfast-deny': null,
      'Job/holdfast-migrate': null,
    },
  ],
  [
    'migrations run before an installation and an upgrade, as the owner of the tables',
    { secrets: { ownerDatabaseUrl: { name: 'owner', key: 'url' } }, migrate: { appRole: 'app' } },
    {
      'Job/holdfast-migrate': {
        metadata: { annotations: { 'helm.sh/hook': 'pre-install,pre-upgrade' } },
        ...container({
          args: ['migrate', '--app-role', 'app'],
          env: expect.arrayContaining([
            { name: 'HOLDFAST_DATABASE_URL', valueFrom: { secretKeyRef: { name: 'owner', key: 'url' } } },
          ]),
        }),
      },
      'ServiceAccount/holdfast-migrate': {
        metadata: { annotations: { 'helm.sh/hook': 'pre-install,pre-upgrade', 'helm.sh/hook-weight': '-10' } },
      },
    },
  ],
  [
    'the bucket is created when asked for, before the migration',
    { createBucket: { enabled: true } },
    { 'Job/holdfast-create-bucket': { metadata: { annotations: { 'helm.sh/hook-weight': '0' } } } },
  ],
  [
    'a service account has the annotations of its role',
    { api: { serviceAccount: { annotations: { 'iam.gke.io/gcp-service-account': 'api@example' } } } },
    {
      'ServiceAccount/holdfast-api': { metadata: { annotations: { 'iam.gke.io/gcp-service-account': 'api@example' } } },
      'Deployment/holdfast-api': { spec: { template: { spec: { serviceAccountName: 'holdfast-api' } } } },
    },
  ],
  [
    'an existing service account is used',
    { worker: { serviceAccount: { create: false, name: 'mine' } } },
    {
      'ServiceAccount/holdfast-worker': null,
      'Deployment/holdfast-worker': { spec: { template: { spec: { serviceAccountName: 'mine' } } } },
    },
  ],
  [
    'a large number stays a number without an exponent',
    { settings: { HOLDFAST_MAX_BODY_BYTES: 2_147_483_648, HOLDFAST_ENCRYPT_DOCUMENTS: false } },
    {
      'Deployment/holdfast-api': environment(
        { name: 'HOLDFAST_MAX_BODY_BYTES', value: '2147483648' },
        { name: 'HOLDFAST_ENCRYPT_DOCUMENTS', value: 'false' },
      ),
    },
  ],
  [
    'workers scale on the depth of the queue, which every replica reports',
    { worker: { keda: { enabled: true, threshold: 8 } } },
    {
      'HorizontalPodAutoscaler/holdfast-worker': null,
      'ScaledObject/holdfast-worker': {
        spec: {
          minReplicaCount: 2,
          triggers: [
            {
              type: 'prometheus',
              metadata: {
                query: 'sum(max by (queue) (holdfast_jobs_waiting{namespace="holdfast"}))',
                threshold: '8',
              },
            },
          ],
        },
      },
    },
  ],
  [
    'the grace period follows from the time of the drain and the limit of the shutdown',
    { shutdownSeconds: 300, api: { drainSeconds: 20 } },
    {
      'Deployment/holdfast-api': { spec: { template: { spec: { terminationGracePeriodSeconds: 330 } } } },
      'Deployment/holdfast-worker': { spec: { template: { spec: { terminationGracePeriodSeconds: 310 } } } },
    },
  ],
  [
    'the pods of a role have the entries of all roles and their own',
    { pod: { nodeSelector: { os: 'linux' }, labels: { a: 'b' } }, worker: { pod: { nodeSelector: { pool: 'big' } } } },
    {
      'Deployment/holdfast-worker': {
        spec: {
          template: {
            metadata: { labels: { a: 'b' } },
            spec: { nodeSelector: { os: 'linux', pool: 'big' } },
          },
        },
      },
    },
  ],
  [
    'without the operator of Prometheus, annotations name the port of the metrics',
    {},
    {
      'Deployment/holdfast-api': {
        spec: {
          template: { metadata: { annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9092' } } },
        },
      },
    },
  ],
  [
    'the scraped job is holdfast, whatever the names',
    { fullnameOverride: 'state', metrics: { serviceMonitor: { enabled: true } } },
    {
      'ServiceMonitor/state': { spec: { jobLabel: 'app.kubernetes.io/part-of' } },
      'Service/state-metrics': { metadata: { labels: { 'app.kubernetes.io/part-of': 'holdfast' } } },
      'Deployment/state-api': {
        spec: { template: { metadata: expect.not.objectContaining({ annotations: expect.anything() }) } },
      },
    },
  ],
  [
    'a private S3 endpoint may be reached on its port',
    { s3: { bucket: 'b', endpoint: 'http://10.0.0.8:9000' } },
    {
      'NetworkPolicy/holdfast-https': {
        spec: { egress: [{ ports: [443, 9000].map((port) => ({ protocol: 'TCP', port })) }] },
      },
    },
  ],
  [
    'a Postgres outside may be reached only at its address',
    { networkPolicy: { egress: { postgres: { ports: [6432], to: [{ ipBlock: { cidr: '10.1.0.0/16' } }] } } } },
    {
      'NetworkPolicy/holdfast-postgres': {
        spec: {
          egress: [{ to: peers({ ipBlock: { cidr: '10.1.0.0/16' } }), ports: [{ protocol: 'TCP', port: 6432 }] }],
        },
      },
      'NetworkPolicy/holdfast-metadata': null,
    },
  ],
  [
    'the metadata services of clouds may be reached when asked for',
    { networkPolicy: { egress: { instanceMetadata: true } } },
    {
      'NetworkPolicy/holdfast-metadata': {
        spec: { egress: [{ to: expect.arrayContaining(peers({ ipBlock: { cidr: '169.254.169.254/32' } })) }] },
      },
    },
  ],
  [
    'the web UI in pods of its own has every path that the API does not have',
    { web: { enabled: true } },
    {
      'Deployment/holdfast-web': container({ image: 'holdfast-web:0.1.0' }),
      'Ingress/holdfast': {
        spec: {
          rules: [
            {
              http: {
                paths: expect.arrayContaining([
                  expect.objectContaining({
                    path: '/',
                    backend: { service: { name: 'holdfast-web', port: { name: 'http' } } },
                  }),
                  expect.objectContaining({
                    path: '/api',
                    backend: { service: { name: 'holdfast-api', port: { name: 'http' } } },
                  }),
                ]),
              },
            },
          ],
        },
      },
    },
  ],
  [
    'secrets of a store are made before the jobs that need them, and stay when they are replaced',
    {
      secrets: { awsAccessKeyId: { name: 's3', key: 'id' }, awsSecretAccessKey: { name: 's3', key: 'secret' } },
      externalSecrets: {
        enabled: true,
        store: { name: 'vault' },
        remote: { awsAccessKeyId: { key: 'a' }, awsSecretAccessKey: { key: 'b', property: 'c' } },
      },
    },
    {
      'ExternalSecret/s3': {
        metadata: { annotations: { 'helm.sh/hook': 'pre-install,pre-upgrade', 'helm.sh/hook-weight': '-20' } },
        spec: {
          target: { name: 's3', creationPolicy: 'Orphan', deletionPolicy: 'Retain' },
          data: [
            { secretKey: 'id', remoteRef: { key: 'a' } },
            { secretKey: 'secret', remoteRef: { key: 'b', property: 'c' } },
          ],
        },
      },
      'ExternalSecret/holdfast-database': null,
    },
  ],
  [
    'a bootstrap file is mounted for the API only',
    { secrets: { bootstrap: { name: 'people', key: 'people.yaml' } } },
    {
      'Deployment/holdfast-api': environment({ name: 'HOLDFAST_BOOTSTRAP', value: '/etc/holdfast/bootstrap/file' }),
      'Deployment/holdfast-worker': {
        spec: { template: { spec: { volumes: [{ name: 'tmp' }, { name: 'sockets' }] } } },
      },
    },
  ],
];

await describeWithTools('the values of the chart', ['chart-tools'], () => {
  test.each(table)('%s', async (_, values, expected) => {
    const { errors, output } = await renderChart({ ...documented, ...values });
    expect(errors).toBe('');
    const manifests = new Map(parseManifests(output).map((manifest) => [named(manifest), manifest]));
    for (const [name, part] of Object.entries(expected)) {
      if (part === null) expect([...manifests.keys()]).not.toContain(name);
      else expect({ [name]: manifests.get(name) }).toMatchObject({ [name]: part });
    }
  });

  test('those in the documentation are accepted', async () => {
    const page = readFileSync(path.join(import.meta.dirname, '../../docs/kubernetes.md'), 'utf8');
    const [first, ...others] = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(
      ([, text = '']) => parse(text) as Values,
    );
    expect(others.length).toBeGreaterThan(1);
    for (const other of [{}, ...others])
      expect(await renderChart({ ...first, ...other })).toMatchObject({ passed: true, errors: '' });
    const [, pushed = ''] = /docker push (\S+)/.exec(page) ?? [];
    expect((await renderChart(first as Values)).output).toContain(`image: ${pushed}\n`);
    // Others that it names, such as `api.drainSeconds`, exist.
    const { networkPolicy, ...defaults } = parse(readFileSync(path.join(chartFolder, 'values.yaml'), 'utf8'));
    const known = { ...defaults, ...networkPolicy, networkPolicy };
    const named = [...page.matchAll(/`([a-zA-Z0-9]+(?:\.[a-zA-Z0-9]+)+)(?:: true)?`/g)].map(([, name = '']) => name);
    const find = (name: string): unknown =>
      name.split('.').reduce<Values | undefined>((part, key) => part?.[key] as Values | undefined, known);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !name.endsWith('.yaml') && find(name) === undefined)).toEqual([]);
  });
});
