import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { holdfastVersion, parseConfig } from '../../src/shared/platform/config/config.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { chartFolder, type Manifest, manifestsFile, renderManifests } from '../../testkit/chart.ts';
import { chartServiceLinks, serviceLinks } from '../../testkit/service-links.ts';
import { describeWithTools } from '../support/tools.ts';
import { manifestsOf, ofKind, type Pod, podsOf, selects, type Variable } from './support/objects.ts';
import { valueSets } from './support/value-sets.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

/** What the secrets of a cluster may hold. */
const secretValues: Readonly<Record<string, string>> = {
  HOLDFAST_DATABASE_URL: 'postgres://holdfast:p4fe2c1b@db.example:5432/holdfast?sslmode=verify-full',
  HOLDFAST_DATABASE_REPLICA_URL: 'postgres://holdfast:p4fe2c1b@replica.example:5432/holdfast',
  HOLDFAST_REDIS_URL: 'rediss://holdfast:p4fe2c1b@redis.example:6379',
  HOLDFAST_MASTER_KEYS: KeyRing.generate(),
  HOLDFAST_AUDIT_EXPORT_URL: 'https://logs.example/in',
};

function environmentOf(env: readonly Variable[]): Record<string, string> {
  return Object.fromEntries(
    env.map(({ name, value }) => [name, value ?? secretValues[name] ?? 'some-text-of-a-secret']),
  );
}

const chartLinks = Object.keys(chartServiceLinks).filter((name) => !/^HOLDFAST_(SERVICE|PORT)/.test(name));

interface AlertRule {
  expr: string;
  labels: Readonly<Record<string, string>>;
}

await describeWithTools('the chart', ['chart-tools'], () => {
  const all = new Map<string, Manifest[]>();
  beforeAll(async () => {
    for (const [name, values] of Object.entries(valueSets)) all.set(name, await manifestsOf(values));
  });
  const of = (name: keyof typeof valueSets): { manifests: Manifest[]; pods: Map<string, Pod> } => {
    const manifests = all.get(name) as Manifest[];
    return { manifests, pods: new Map(podsOf(manifests).map((pod) => [pod.role, pod])) };
  };

  test.each(Object.keys(valueSets))('configures each role so that it starts beside every service, with %s', (name) => {
    const services = [...all.values()].flatMap((manifests) => ofKind(manifests, 'Service'));
    const links = services.flatMap(({ metadata, spec }) =>
      spec.ports.map((port: { name: string; port: number }) => serviceLinks(metadata.name, port)),
    );
    // The clusters of all other tests have them as well.
    expect(Object.keys(Object.assign({}, ...links))).toEqual(expect.arrayContaining(chartLinks));
    const beside = Object.assign({}, ...links, chartServiceLinks);
    expect(Object.keys(beside)).toEqual(
      expect.arrayContaining(['HOLDFAST_PORT', 'HOLDFAST_API_SERVICE_HOST', 'HOLDFAST_WEB_PORT_80_TCP_ADDR']),
    );
    for (const [role, { env }] of of(name).pods) {
      if (role === 'web') continue;
      const config = parseConfig({ ...beside, ...environmentOf(env) });
      expect(config.ignoredVariables).toEqual(
        Object.keys(beside)
          .filter((each) => each.startsWith('HOLDFAST'))
          .sort(),
      );
      expect(config).toMatchObject({
        publicUrl: expect.stringMatching(/^https:/),
        blobs: { kind: 's3' },
      });
    }
  });

  test('gives a role only the secrets that it needs', () => {
    const secretsOf = (name: string): Record<string, string[]> =>
      Object.fromEntries(
        [...of(name).pods].map(([role, { env }]) => [
          role,
          env.flatMap(({ valueFrom, ...variable }) => (valueFrom ? [variable.name] : [])),
        ]),
      );
    const serving = ['HOLDFAST_DATABASE_URL', 'HOLDFAST_REDIS_URL'];
    expect(secretsOf('documented')).toEqual({
      migrate: ['HOLDFAST_DATABASE_URL'],
      worker: serving,
      api: [serving[0], 'HOLDFAST_MASTER_KEYS', serving[1]],
    });
    const aws = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'];
    expect(secretsOf('everything behind an ingress')).toEqual({
      migrate: ['HOLDFAST_DATABASE_URL'],
      'create-bucket': aws,
      web: [],
      // Workers decrypt documents here.
      worker: [
        ...aws,
        'HOLDFAST_AUDIT_EXPORT_TOKEN',
        'HOLDFAST_AUDIT_EXPORT_URL',
        'HOLDFAST_BUNDLE_PASSPHRASE',
        serving[0],
        'HOLDFAST_MASTER_KEYS',
        serving[1],
        'HOLDFAST_VAULT_TOKEN',
      ],
      api: [
        ...aws,
        'HOLDFAST_AUDIT_EXPORT_URL',
        // For `holdfast bundle`, which runs beside the API.
        'HOLDFAST_BUNDLE_PASSPHRASE',
        'HOLDFAST_DATABASE_REPLICA_URL',
        serving[0],
        'HOLDFAST_MASTER_KEYS',
        serving[1],
        'HOLDFAST_VAULT_TOKEN',
      ],
    });
  });

  test('gives API and workers a folder for the sockets of holdfast debug', () => {
    for (const role of ['api', 'worker'])
      expect(of('documented').pods.get(role)?.container.volumeMounts).toContainEqual({
        name: 'sockets',
        mountPath: '/data/run',
      });
  });

  const portsOf = (
    name: string,
    role: string,
    way: 'ingress' | 'egress',
    isCounted: (policy: Manifest) => boolean = () => true,
  ): number[] => {
    const { manifests, pods } = of(name);
    const ports = ofKind(manifests, 'NetworkPolicy')
      .filter((policy) => isCounted(policy) && selects(policy['spec'].podSelector, pods.get(role)?.labels ?? {}))
      .flatMap((policy) => policy['spec'][way] ?? [])
      .flatMap((rule: { ports: { port: number }[] }) => rule.ports.map(({ port }) => port));
    return [...new Set(ports)].sort((a, b) => a - b);
  };

  test('lets the jobs of an upgrade reach what its values name, while the policies of the last release are in force', () => {
    const name = 'everything behind an ingress';
    for (const role of ['migrate', 'create-bucket']) {
      const job = ofKind(of(name).manifests, 'Job').find(({ metadata }) => metadata.name === `holdfast-${role}`);
      const weightOf = (each?: Manifest): number => Number(each?.metadata.annotations?.['helm.sh/hook-weight']);
      const isBefore = (policy: Manifest): boolean =>
        policy.metadata.annotations?.['helm.sh/hook'] === 'pre-install,pre-upgrade' && weightOf(policy) < weightOf(job);
      expect(portsOf(name, role, 'egress', isBefore)).toEqual(portsOf(name, role, 'egress'));
      expect(portsOf(name, role, 'egress')).not.toEqual([]);
    }
  });

  test('lets pods talk only to the peers they need', () => {
    const [denied] = ofKind(of('documented').manifests, 'NetworkPolicy');
    expect(denied?.['spec'].policyTypes).toEqual(['Ingress', 'Egress']);
    for (const { labels } of of('everything behind an ingress').pods.values())
      expect(selects(denied?.['spec'].podSelector, labels)).toBe(true);
    const name = 'everything behind an ingress';
    expect(portsOf('documented', 'api', 'ingress')).toEqual([9090, 9092]);
    expect(portsOf('documented', 'worker', 'ingress')).toEqual([9092]);
    expect(portsOf('documented', 'api', 'egress')).toEqual([53, 443, 5432, 6379]);
    expect(portsOf('documented', 'migrate', 'egress')).toEqual([53, 5432]);
    expect(portsOf(name, 'api', 'egress')).toEqual([53, 80, 443, 988, 5432, 6379, 6432, 8200, 9000]);
    expect(portsOf(name, 'worker', 'egress')).toEqual(portsOf(name, 'api', 'egress'));
    expect(portsOf(name, 'create-bucket', 'egress')).toEqual([53, 80, 443, 988, 9000]);
    expect(portsOf(name, 'migrate', 'egress')).toEqual([53, 5432, 6432]);
    expect(portsOf(name, 'web', 'ingress')).toEqual([8080]);
    expect(portsOf(name, 'web', 'egress')).toEqual([]);
    for (const role of ['migrate', 'create-bucket']) expect(portsOf(name, role, 'ingress')).toEqual([]);
    expect(portsOf('no way in of its own, and other names', 'worker', 'ingress')).toEqual([]);
  });

  test('sends to the API what the proxy of the compose file does', () => {
    const [, listed = ''] = /^\s*@api path (.+)$/m.exec(read('deploy/proxy/Caddyfile')) ?? [];
    const paths = listed.split(' ');
    // `/api/*` and `/api` are one prefix.
    const prefixes = paths.filter((each) => each.endsWith('/*')).map((each) => each.slice(0, -2));
    const exact = paths.filter((each) => !each.endsWith('/*') && !prefixes.includes(each));
    const wanted = [...prefixes.map((each) => `Prefix ${each}`), ...exact.map((each) => `Exact ${each}`)].sort();
    const [ingress] = ofKind(of('everything behind an ingress').manifests, 'Ingress');
    const toApi = ingress?.['spec'].rules[0].http.paths.filter(
      ({ backend }: { backend: { service: { name: string } } }) => backend.service.name === 'holdfast-api',
    );
    expect(toApi.map((each: { pathType: string; path: string }) => `${each.pathType} ${each.path}`).sort()).toEqual(
      wanted,
    );
    const [route] = ofKind(of('a gateway, with one process of each role').manifests, 'HTTPRoute');
    const matches = route?.['spec'].rules
      .filter(({ backendRefs }: { backendRefs: { name: string }[] }) => backendRefs[0]?.name === 'holdfast-api')
      .flatMap((rule: { matches: { path: { type: string; value: string } }[] }) => rule.matches);
    expect(
      matches
        .map(
          ({ path: { type, value } }: { path: { type: string; value: string } }) =>
            `${type.replace('Path', '')} ${value}`,
        )
        .sort(),
    ).toEqual(wanted);
  });

  test('lets the last call of a run wait for its stack, behind nginx for as long as a call to a lost node may hang', () => {
    const [ingress] = ofKind(of('everything behind an ingress').manifests, 'Ingress');
    const { annotations } = ingress?.metadata ?? {};
    expect(annotations?.['nginx.ingress.kubernetes.io/proxy-read-timeout']).toBe('1800');
    const [route] = ofKind(of('a gateway, with one process of each role').manifests, 'HTTPRoute');
    for (const { timeouts } of route?.['spec'].rules ?? []) expect(timeouts).toEqual({ request: '0s' });
  });

  test('has the alert rules and the dashboards of deploy/monitoring', () => {
    const { manifests } = of('everything behind an ingress');
    const [rule] = ofKind(manifests, 'PrometheusRule');
    const { groups } = parse(read('deploy/monitoring/alerts.yml')) as { groups: { rules: AlertRule[] }[] };
    const scoped = (expr: string): string =>
      expr.replaceAll(/\b(holdfast[_:][\w:]+)(\{?)/g, (_, name: string, brace: string) =>
        brace ? `${name}{namespace="holdfast", ` : `${name}{namespace="holdfast"}`,
      );
    // A release in another namespace must not hide that this one is down.
    for (const { rules } of groups)
      for (const each of rules) {
        each.expr = scoped(each.expr);
        each.labels = { ...each.labels, namespace: 'holdfast' };
      }
    expect(rule?.['spec']).toEqual({ groups });
    expect(JSON.stringify(groups)).toContain('absent(holdfast_build_info{namespace=\\"holdfast\\", role');
    const [map] = ofKind(manifests, 'ConfigMap');
    const folder = path.join(root, 'deploy/monitoring/dashboards');
    const files = readdirSync(folder).map((name) => [
      `holdfast-${name}`,
      read(path.join('deploy/monitoring/dashboards', name)),
    ]);
    expect(files).toHaveLength(4);
    expect(Object.keys(map?.['data']).sort()).toEqual(files.map(([name]) => name));
    for (const [name = '', text = ''] of files) expect(JSON.parse(map?.['data'][name])).toEqual(JSON.parse(text));
  });

  test('has the version of the program', () => {
    const chart = parse(readFileSync(path.join(chartFolder, 'Chart.yaml'), 'utf8'));
    expect(chart).toMatchObject({ version: holdfastVersion, appVersion: holdfastVersion });
  });

  test('gives the manifests that are checked in; after a change, run: npm run manifests', async () => {
    expect(readFileSync(manifestsFile, 'utf8')).toBe(await renderManifests());
  });
});
