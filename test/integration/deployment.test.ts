import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly networks?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly privileged?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
}

describe('docker-compose.yml', () => {
  const compose = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Readonly<Record<string, Service>>;
    networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
  };
  const services = Object.entries(compose.services);
  const named = (name: string): Service => compose.services[name] as Service;

  test('separates the services that are exposed to strangers from the stores', () => {
    expect(compose.networks['data']).toEqual({ internal: true });
    const inNetwork = (network: string): string[] =>
      services.filter(([, { networks }]) => networks?.includes(network)).map(([name]) => name);
    expect(inNetwork('front').sort()).toEqual(['api-1', 'api-2', 'api-3', 'proxy', 'server', 'single-proxy', 'web']);
    expect(inNetwork('console')).toEqual(['s3']);
    expect(services.filter(([, { networks }]) => !networks?.length).map(([name]) => name)).toEqual([]);
    const reaches = (from: string): string[] =>
      services
        .filter(([, { networks }]) => networks?.some((network) => named(from).networks?.includes(network)))
        .map(([name]) => name);
    for (const outside of ['proxy', 'single-proxy', 'web'])
      for (const store of ['postgres', 'redis', 's3', 'worker']) expect(reaches(outside)).not.toContain(store);
    expect(reaches('api-1')).toEqual(expect.arrayContaining(['postgres', 'redis', 's3', 'proxy']));
    expect(reaches('worker')).toEqual(expect.arrayContaining(['postgres', 'redis', 's3']));
  });

  test('gives master keys only to services that decrypt secrets', () => {
    const keyed = services.filter(([, { environment }]) => environment?.['HOLDFAST_MASTER_KEYS']).map(([name]) => name);
    expect(keyed.sort()).toEqual(['api-1', 'api-2', 'api-3', 'server']);
    // Empty rather than missing: all services read .env, which has the keys.
    for (const name of ['worker', 'migrate', 'create-bucket'])
      expect(named(name).environment).toMatchObject({ HOLDFAST_MASTER_KEYS: '' });
  });

  test('gives Redis and its clients the same password, without which Redis does not start (compose.test.ts)', () => {
    const password = `\${REDIS_PASSWORD:-}`;
    expect(named('redis').environment).toEqual({ REDIS_PASSWORD: password });
    for (const name of ['api-1', 'api-2', 'api-3', 'worker'])
      expect(named(name).environment?.['HOLDFAST_REDIS_URL']).toBe(`redis://holdfast:${password}@redis:6379`);
  });

  test('gives no container more rights than it needs', () => {
    for (const [name, service] of services) {
      expect({ name, privileged: service.privileged ?? false }).toEqual({ name, privileged: false });
      expect({ name, image: service.image }).toEqual({
        name,
        image: expect.stringMatching(/:(?!latest)[\w.${}:-]+(@sha256:[0-9a-f]{64})?$/),
      });
      // The Postgres image first changes the owner of its volume to its own user.
      if (name === 'postgres') continue;
      expect({ name, ...service }).toMatchObject({
        name,
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
    }
  });
});

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

interface PodSpec {
  readonly automountServiceAccountToken?: boolean;
  readonly containers: readonly {
    readonly image: string;
    readonly envFrom: readonly { readonly secretRef: { readonly name: string } }[];
    readonly ports?: readonly { readonly containerPort: number }[];
    readonly securityContext: object;
  }[];
}

describe('deploy/kubernetes', () => {
  const load = (file: string): Resource[] =>
    parseAllDocuments(read(`deploy/kubernetes/${file}`)).map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS() as Resource;
    });
  const pods = new Map<string, { labels: Record<string, string>; spec: PodSpec }>();
  for (const { spec } of load('holdfast.yaml')) {
    const { template } = spec as { template?: { metadata: { labels: Record<string, string> }; spec: PodSpec } };
    if (template)
      pods.set(template.metadata.labels['role'] as string, { labels: template.metadata.labels, spec: template.spec });
  }
  const policies = load('network-policies.yaml');

  test('runs every pod with few rights and few secrets', () => {
    expect([...pods.keys()].sort()).toEqual(['api', 'migrate', 'worker']);
    const secrets: Record<string, string[]> = {};
    for (const [role, { spec, labels }] of pods) {
      expect(labels['app']).toBe('holdfast');
      expect(spec.automountServiceAccountToken).toBe(false);
      for (const container of spec.containers) {
        expect(container.image).toMatch(/:(?!latest)[\w.]+(@sha256:[0-9a-f]{64})?$/);
        expect(container.securityContext).toEqual({
          runAsNonRoot: true,
          runAsUser: 1000,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
          seccompProfile: { type: 'RuntimeDefault' },
        });
        secrets[role] = container.envFrom.map(({ secretRef }) => secretRef.name);
      }
    }
    expect(secrets).toEqual({
      migrate: ['holdfast-migrate'],
      worker: ['holdfast-database', 'holdfast-stores'],
      api: ['holdfast-database', 'holdfast-stores', 'holdfast-master-keys'],
    });
  });

  interface Policy {
    readonly podSelector: {
      readonly matchLabels: Readonly<Record<string, string>>;
      readonly matchExpressions?: readonly {
        readonly key: string;
        readonly operator: string;
        readonly values: readonly string[];
      }[];
    };
    readonly policyTypes: readonly string[];
    readonly ingress?: readonly {
      readonly from: readonly object[];
      readonly ports: readonly { readonly port: number }[];
    }[];
    readonly egress?: readonly {
      readonly to: readonly object[];
      readonly ports: readonly { readonly port: number }[];
    }[];
  }
  const selects = ({ podSelector }: Policy, labels: Readonly<Record<string, string>>): boolean =>
    Object.entries(podSelector.matchLabels).every(([key, value]) => labels[key] === value) &&
    (podSelector.matchExpressions ?? []).every(({ key, values }) => values.includes(labels[key] ?? ''));
  const ports = (role: string, way: 'ingress' | 'egress'): number[] =>
    policies
      .map(({ spec }) => spec as unknown as Policy)
      .filter((policy) => selects(policy, pods.get(role)?.labels ?? {}))
      .flatMap((policy) => (policy[way] ?? []).flatMap((rule) => rule.ports.map(({ port }) => port)))
      .sort((a, b) => a - b);

  test('lets pods talk only to the peers they need', () => {
    expect(policies.every(({ kind }) => kind === 'NetworkPolicy')).toBe(true);
    expect(policies[0]?.spec).toEqual({
      podSelector: { matchLabels: { app: 'holdfast' } },
      policyTypes: ['Ingress', 'Egress'],
    });
    // A rule without a peer or a port would allow everything.
    for (const { spec } of policies)
      for (const rule of [
        ...((spec as unknown as Policy).ingress ?? []),
        ...((spec as unknown as Policy).egress ?? []),
      ]) {
        expect(rule.ports.length).toBeGreaterThan(0);
        const peers = 'from' in rule ? rule.from : rule.to;
        expect(peers.filter((peer) => Object.keys(peer).length === 0)).toEqual([]);
        expect(peers.length).toBeGreaterThan(0);
      }
    expect(ports('api', 'ingress')).toEqual([9090, 9092]);
    expect(ports('worker', 'ingress')).toEqual([9091]);
    expect(ports('migrate', 'ingress')).toEqual([]);
    expect(ports('api', 'egress')).toEqual([53, 53, 443, 5432, 6379]);
    expect(ports('worker', 'egress')).toEqual([53, 53, 443, 5432, 6379]);
    expect(ports('migrate', 'egress')).toEqual([53, 53, 5432]);
  });
});
