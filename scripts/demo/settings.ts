import { gzipSync } from 'node:zlib';
import type { RawClient } from '../../bench/support/raw-client.ts';
import type { Calls } from './calls.ts';

const day = 86_400_000;

/** Gives an organization the settings of its admins: people in teams, tokens, rules, webhooks and policies. */
export async function seedSettings(
  organization: string,
  { calls, client, receiver }: { readonly calls: Calls; readonly client: RawClient; readonly receiver: string },
): Promise<void> {
  await seedPeople(organization, calls);
  await seedMachines(organization, calls);
  await seedRules(organization, calls);
  await seedWebhooks(organization, calls, receiver);
  await seedPolicies(organization, calls, client);
}

async function seedPeople(organization: string, { grants, roles, teams }: Calls): Promise<void> {
  const members: Readonly<Record<string, readonly [string, readonly string[]]>> = {
    checkout: ['The shop, from the cart to the payment', ['grace', 'alan', 'ken']],
    platform: ['Clusters, networks and what all teams use', ['barbara', 'linus', 'radia']],
    data: ['Streams, the warehouse and nightly jobs', ['edsger', 'frances']],
  };
  for (const [team, [description, logins]] of Object.entries(members)) {
    await teams.create.mutate({ organization, name: team, description });
    for (const login of logins) await teams.setMember.mutate({ organization, team, login });
    await teams.setMember.mutate({ organization, team, login: logins[0] as string, isAdmin: true });
  }
  const releaser = await roles.create.mutate({
    organization,
    name: 'releaser',
    description: 'Previews and updates, without secrets',
    permissions: ['read', 'preview', 'write'],
  });
  await roles.create.mutate({
    organization,
    name: 'auditor',
    description: 'Reads states and secrets, changes nothing',
    permissions: ['read', 'decrypt'],
  });
  await grants.give.mutate({
    organization,
    team: 'checkout',
    effect: 'allow',
    role: releaser.id,
    stacks: 'storefront/*',
  });
  await grants.give.mutate({
    ...{ organization, user: 'margaret', effect: 'allow', permissions: ['preview', 'write'] },
    tag: { name: 'environment', value: 'dev' },
  });
  await grants.give.mutate({
    ...{ organization, team: 'data', effect: 'deny', permissions: ['write'] },
    tag: { name: 'environment', value: 'prod' },
  });
}

async function seedMachines(organization: string, { issuers, tokens }: Calls): Promise<void> {
  const seconds = (days: number): number => Math.floor((Date.now() + days * day) / 1000);
  const scopes = [{ permissions: ['read', 'preview', 'write'], stacks: 'storefront/*' }];
  await tokens.create.mutate({
    ...{ organization, name: 'deploy-storefront', description: 'Pipeline of the shop', power: 'member' },
    ...{ scopes, expires: seconds(80) },
  });
  await tokens.create.mutate({
    ...{ organization, name: 'nightly-refresh', description: 'Looks for drift at night', power: 'service' },
    scopes: [{ permissions: ['read', 'preview'], stacks: '*/*' }],
  });
  await tokens.create.mutate({
    ...{ organization, name: 'old-pipeline', description: 'To be removed', power: 'admin', expires: seconds(6) },
  });
  await tokens.createOfTeam.mutate({ organization, team: 'platform', name: 'cluster-upgrades', expires: seconds(30) });
  const issuer = await issuers.create.mutate({
    ...{ organization, name: 'github-actions', url: 'https://token.actions.githubusercontent.com' },
    maxSeconds: 3_600,
  });
  const { version } = await issuers.get.query({ organization, id: issuer.id });
  await issuers.setPolicies.mutate({
    ...{ organization, id: issuer.id, version },
    policies: [
      {
        ...{ decision: 'allow', tokenType: 'team', owner: 'checkout' },
        rules: [
          { claim: 'repository', patterns: ['acme/storefront'] },
          { claim: 'ref', patterns: ['refs/heads/main', 'refs/heads/release/*'] },
        ],
      },
      {
        decision: 'deny',
        tokenType: 'any',
        rules: [{ claim: 'event_name', patterns: ['pull_request_target'] }],
      },
    ],
  });
}

async function seedRules(organization: string, { rules }: Calls): Promise<void> {
  const production = { tag: { name: 'environment', value: 'prod' } };
  const all: readonly Parameters<Calls['rules']['set']['mutate']>[0][] = [
    { organization, kind: 'lock-wait', settings: { seconds: 1_800 }, note: 'Pipelines wait instead of failing' },
    { organization, kind: 'supersede', ...production, settings: { by: 'branch' } },
    { organization, kind: 'concurrency', settings: { most: 6, per: 'project' }, note: 'The cloud limits its calls' },
    { organization, kind: 'change-limit', ...production, settings: { percent: 25 } },
    {
      ...{ organization, kind: 'protected-types', ...production, note: 'Ask the data team' },
      settings: { types: ['aws:rds/*', 'gcp:bigquery/*'] },
    },
    { organization, kind: 'require-preview', ...production, settings: { mode: 'warn' } },
    { organization, kind: 'consumers', settings: { mode: 'refuse' } },
    {
      ...{ organization, kind: 'freeze', project: 'storefront', stack: 'prod-us', note: 'Sale until the weekend' },
      settings: { until: new Date(Date.now() + 4 * day).toISOString() },
    },
    {
      ...{ organization, kind: 'freeze', project: 'website', note: 'Nobody is there' },
      settings: { mode: 'wait', windows: [{ cron: '0 17 * * 5', timeZone: 'Europe/Berlin', minutes: 3_780 }] },
    },
  ];
  for (const rule of all) await rules.set.mutate(rule);
}

async function seedWebhooks(organization: string, { webhooks }: Calls, receiver: string): Promise<void> {
  const usual = { organization, format: 'raw', isActive: true, events: [], groups: [] };
  const made = [
    { ...usual, displayName: 'Deployments, #deploys', url: `${receiver}/deploys`, format: 'slack' },
    { ...usual, displayName: 'Change calendar', url: `${receiver}/calendar`, secret: 'demo secret of the calendar' },
    { ...usual, displayName: 'Old incident channel', url: `${receiver}/gone`, format: 'ms_teams', groups: ['stacks'] },
    { ...usual, displayName: 'Paused', url: `${receiver}/paused`, isActive: false, events: ['drift_detected'] },
  ];
  for (const webhook of made) await webhooks.create.mutate(webhook);
}

async function seedPolicies(organization: string, { policies }: Calls, client: RawClient): Promise<void> {
  const policy = (name: string, description: string, enforcementLevel: string) => ({
    ...{ name, displayName: name, description, enforcementLevel, message: description },
    configSchema: { type: 'object', properties: { allowed: { type: 'array', items: { type: 'string' } } } },
  });
  const packs = {
    security: [
      policy('no-public-buckets', 'Buckets are not readable by everybody', 'mandatory'),
      policy('encrypted-databases', 'Databases are encrypted at rest', 'mandatory'),
    ],
    cost: [policy('instance-sizes', 'Development uses small instances', 'advisory')],
  };
  for (const [name, list] of Object.entries(packs)) {
    for (const versionTag of name === 'security' ? ['1.0.0', '1.1.0'] : ['0.9.0']) {
      const path = `/api/orgs/${organization}/policypacks`;
      const body = { name, displayName: `acme ${name}`, versionTag, policies: list, runtime: 'nodejs' };
      const { requiredHeaders, uploadURI } = JSON.parse(await client.once('POST', path, body)) as {
        uploadURI: string;
        requiredHeaders: Record<string, string>;
      };
      const archive = gzipSync(`the files of ${name}`);
      const { ok } = await fetch(uploadURI, { method: 'PUT', headers: requiredHeaders, body: new Uint8Array(archive) });
      if (!ok) throw new Error(`the policy pack ${name} was not taken`);
      await client.once('POST', `${path}/${name}/versions/${versionTag}/complete`);
    }
  }
  const group = 'production';
  await policies.createGroup.mutate({ organization, group });
  for (const project of ['storefront', 'cluster'])
    await policies.changeGroup.mutate({ organization, group, addStack: { project, stack: 'prod' } });
  const config = { 'no-public-buckets': { enforcementLevel: 'mandatory' } };
  await policies.changeGroup.mutate({ organization, group, enable: { pack: 'security', tag: '1.1.0', config } });
  await policies.changeGroup.mutate({ organization, group: 'default-policy-group', enable: { pack: 'cost' } });
}
