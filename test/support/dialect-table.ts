import { createHash } from 'node:crypto';
import { expect } from '@jest/globals';
import { updateKinds } from '../../src/api/platform/http/paths.ts';
import { hookRoutes } from './hook-routes.ts';
import { deployment, type TestStack } from './state.ts';
import { cliAccept, contractAccept } from './test-app.ts';

export const dialects = { cli: cliAccept, contract: contractAccept } as const;
export type DialectName = keyof typeof dialects;
export const dialectNames: readonly DialectName[] = ['cli', 'contract'];

/** A stack in the state that a route needs. */
export interface Scene {
  readonly stack: TestStack;
  readonly updateId: string;
  readonly lease: string;
  /** Additional values of the scene, for bodies. */
  readonly ciphertext: string;
}

export type Needs =
  | 'idle'
  | 'tagged'
  | 'imported'
  | 'secret'
  | 'created'
  | 'running'
  | 'saved'
  | 'journal'
  | 'ended'
  | 'uploaded'
  | 'published'
  | 'grouped';
type BodyOf = (scene: Scene) => object;
type Verdict = 'taken' | 'refused';

interface Bodies {
  readonly own: Readonly<Record<DialectName, BodyOf>>;
  /** Where the dialects differ. */
  readonly crossed: Readonly<Record<DialectName, Verdict>> | null;
}

export interface DialectRow {
  /** An idle stack by default. */
  readonly needs?: Needs;
  /** The contract does not have the route. */
  readonly beyond?: true;
  readonly query?: string;
  readonly body?: Bodies;
  readonly status: 200 | 204;
  /** Of a response that is not JSON. */
  readonly contentType?: string;
  /** The response with all its members. */
  readonly answer?: Readonly<Record<DialectName, unknown>>;
}

const S = '/api/stacks/:organization/:project/:stack';
const U = `${S}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;

const packs = '/api/orgs/:organization/policypacks';
const groups = '/api/orgs/:organization/policygroups';
const tokenPaths = ['/api/user/tokens', '/api/orgs/:organization/tokens', '/api/orgs/:organization/teams/:team/tokens'];

/** Routes of people, tokens, issuers and rules have no dialects. Other tests call them. */
export const withoutDialects: readonly string[] = [
  'GET /api/embeds/badge.svg',
  'GET /api/embeds/updates.atom',
  'GET /api/orgs/:organization/members',
  'POST /api/orgs/:organization/members/:login',
  'PATCH /api/orgs/:organization/members/:login',
  'DELETE /api/orgs/:organization/members/:login',
  'GET /api/orgs/:organization/invitations',
  'POST /api/orgs/:organization/invitations',
  'DELETE /api/orgs/:organization/invitations/:login',
  'GET /api/user/invitations',
  'POST /api/user/invitations/:organization/accept',
  'DELETE /api/user/invitations/:organization',
  'DELETE /api/user/organizations/:organization',
  'GET /api/orgs/:organization/access-policy',
  'PATCH /api/orgs/:organization/access-policy',
  `POST ${U}/drain`,
  `GET ${U}/statistics`,
  `GET ${S}/approvals`,
  `POST ${S}/approvals`,
  `POST ${S}/approvals/:approvalId`,
  'GET /api/orgs/:organization/deleted-stacks',
  'POST /api/orgs/:organization/deleted-stacks/:deletedStackId/restore',
  'DELETE /api/orgs/:organization/deleted-stacks/:deletedStackId',
  `DELETE ${S}/approvals/:approvalId`,
  `GET ${S}/legal-hold`,
  `PUT ${S}/legal-hold`,
  `DELETE ${S}/legal-hold`,
  `PUT ${S}/versions/:stackVersion/pin`,
  `DELETE ${S}/versions/:stackVersion/pin`,
  'GET /api/orgs/:organization/update-rules/estimate',
  'GET /api/orgs/:organization/update-rules',
  'POST /api/orgs/:organization/update-rules',
  'GET /api/orgs/:organization/update-rules/:ruleId',
  'PUT /api/orgs/:organization/update-rules/:ruleId',
  'DELETE /api/orgs/:organization/update-rules/:ruleId',
  'POST /api/oauth/token',
  'GET /api/orgs/:organization/stack-hooks',
  ...hookRoutes('/api/orgs/:organization'),
  ...hookRoutes(S),
  'GET /api/orgs/:organization/delivery',
  'GET /api/orgs/:organization/search/resources',
  'GET /api/orgs/:organization/search/resourcesv2',
  `GET ${S}/drift/status`,
  `GET ${S}/drift/runs`,
  'GET /api/orgs/:organization/oidc/issuers',
  'POST /api/orgs/:organization/oidc/issuers',
  'GET /api/orgs/:organization/oidc/issuers/:issuerId',
  'PATCH /api/orgs/:organization/oidc/issuers/:issuerId',
  'DELETE /api/orgs/:organization/oidc/issuers/:issuerId',
  'GET /api/orgs/:organization/auth/policies/oidcissuers/:issuerId',
  'PATCH /api/orgs/:organization/auth/policies/:policyId',
  'GET /api/orgs/:organization/teams',
  'POST /api/orgs/:organization/teams/pulumi',
  'GET /api/orgs/:organization/teams/:team',
  'PATCH /api/orgs/:organization/teams/:team',
  'DELETE /api/orgs/:organization/teams/:team',
  'GET /api/orgs/:organization/teams/:team/roles',
  'POST /api/orgs/:organization/teams/:team/roles/:role',
  'DELETE /api/orgs/:organization/teams/:team/roles/:role',
  'GET /api/orgs/:organization/roles',
  'POST /api/orgs/:organization/roles',
  'GET /api/orgs/:organization/roles/scopes',
  'GET /api/orgs/:organization/roles/:role',
  'PATCH /api/orgs/:organization/roles/:role',
  'DELETE /api/orgs/:organization/roles/:role',
  'GET /api/orgs/:organization/managed-objects',
  'PATCH /api/orgs/:organization/managed-objects',
  'GET /api/operator/organizations',
  'POST /api/operator/organizations',
  'DELETE /api/operator/organizations/:name',
  'GET /api/operator/organizations/:name/quota',
  'PUT /api/operator/organizations/:name/quota',
  'GET /api/operator/users',
  'POST /api/operator/users',
  'GET /api/operator/users/:login',
  'PATCH /api/operator/users/:login',
  'GET /api/orgs/:organization/grants',
  'POST /api/orgs/:organization/grants',
  'PATCH /api/orgs/:organization/grants',
  'DELETE /api/orgs/:organization/grants/:grant',
  'GET /api/stacks/:organization/:project/:stack/access',
  'GET /api/stacks/:organization/:project/:stack/teams',
  'GET /api/stacks/:organization/:project/:stack/collaborators',
  ...tokenPaths.flatMap((path) => [
    `GET ${path}`,
    `POST ${path}`,
    `DELETE ${path}/:tokenId`,
    `POST ${path}/:tokenId/rotate`,
  ]),
];

const uuid = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
const seconds = expect.any(Number);
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const text = expect.any(String);
const each = (cli: unknown, contract: unknown) => ({ cli, contract });
const alike = (answer: unknown) => each(answer, answer);
const toBodyOf = (body: object | BodyOf): BodyOf => (typeof body === 'function' ? (body as BodyOf) : () => body);
const same = (body: object | BodyOf): Bodies => ({
  own: { cli: toBodyOf(body), contract: toBodyOf(body) },
  crossed: null,
});
const apart = (cli: object | BodyOf, contract: object | BodyOf, crossed: Bodies['crossed']): Bodies => ({
  own: { cli: toBodyOf(cli), contract: toBodyOf(contract) },
  crossed,
});
const bothTaken = { cli: 'taken', contract: 'taken' } as const;
/** The CLI's dialect also accepts the contract's form, which cannot be confused with its own. */
const ownInContract = { cli: 'taken', contract: 'refused' } as const;
const bothRefused = { cli: 'refused', contract: 'refused' } as const;

const program = { name: 'proj', runtime: 'yaml', main: '', description: 'd' };
const config = { 'proj:a': { string: 'v', secret: false, object: false } };
const environment = { 'git.head': 'abc' };
const named = { orgName: text, projectName: 'proj', stackName: 'dev', tags: {} };
export const document = deployment(1);
export const base = JSON.stringify(document);
const verbatim = { version: 3, sequenceNumber: 1 };

const group = {
  name: 'default-policy-group',
  isOrgDefault: true,
  entityType: 'stacks',
  mode: 'preventative',
};

const packVersion = {
  ...{ name: 'pack', displayName: 'A pack', version: 1, versionTag: '1.0.0', applied: false },
  policies: [expect.objectContaining({ name: 'no-buckets' })],
};

const createUpdate: DialectRow = {
  body: apart(
    { ...program, options: { dryRun: false, color: 'raw' }, config, metadata: { message: 'm', environment } },
    { ...program, config, metadata: { kind: 'update', message: 'm', environment } },
    bothTaken,
  ),
  status: 200,
  answer: each({ updateID: uuid, requiredPolicies: [], messages: [] }, { updateID: uuid }),
};

const historyOf = (kind: string, version: number) => ({
  updateID: uuid,
  kind,
  startTime: seconds,
  endTime: seconds,
  message: text,
  environment: {},
  config: {},
  result: 'succeeded',
  status: 'succeeded',
  version,
  resourceChanges: {},
  resourceCount: expect.any(Number),
});

/** Every route under /api/. A new route fails a test until it has a row. */
export const dialectTable: Readonly<Record<string, DialectRow>> = {
  'GET /api/capabilities': {
    beyond: true,
    status: 200,
    answer: alike({ capabilities: expect.arrayContaining([{ capability: 'batch-encrypt' }]) }),
  },
  'GET /api/cli/version': {
    beyond: true,
    status: 200,
    answer: alike({ latestVersion: text, oldestWithoutWarning: text, latestDevVersion: text }),
  },
  'GET /api/openapi.json': {
    beyond: true,
    status: 200,
    answer: alike(expect.objectContaining({ openapi: expect.stringMatching(/^3\.1/) })),
  },
  'GET /api/openapi/pulumi-spec.json': {
    beyond: true,
    status: 200,
    answer: alike(expect.objectContaining({ openapi: expect.stringMatching(/^3\.1/) })),
  },
  'GET /api/user': {
    beyond: true,
    status: 200,
    answer: alike(
      expect.objectContaining({ githubLogin: text, organizations: [expect.objectContaining({ name: text })] }),
    ),
  },
  'GET /api/user/organizations/default': {
    beyond: true,
    status: 200,
    answer: alike({ GitHubLogin: text, Messages: [] }),
  },
  'GET /api/registry/packages': { beyond: true, status: 200, answer: alike({ packages: [] }) },
  'GET /api/registry/templates': { beyond: true, status: 200, answer: alike({ templates: [] }) },
  'GET /api/preview/registry/packages': { beyond: true, status: 200, answer: alike({ packages: [] }) },
  'GET /api/preview/registry/templates': { beyond: true, status: 200, answer: alike({ templates: [] }) },
  'GET /api/user/stacks': {
    needs: 'imported',

    status: 200,
    answer: each(
      {
        stacks: [{ id: uuid, ...named, version: 1, activeUpdate: '', lastUpdate: seconds, resourceCount: 1 }],
      },
      {
        stacks: [
          {
            ...named,
            version: 1,
            activeUpdate: '',
            lastUpdate: { kind: 'import', status: 'succeeded', startTime: seconds },
          },
        ],
      },
    ),
  },
  'POST /api/stacks/:organization/:project': {
    body: apart(
      { stackName: 'new', tags: { a: 'b' }, teams: null, state: document, config: null },
      { stackName: 'new' },
      bothTaken,
    ),
    status: 200,
    answer: each(
      { ...named, id: text, stackName: 'new', tags: { a: 'b' }, version: 0, messages: [] },
      { ...named, id: expect.stringMatching(/^[^/]+\/proj\/new$/), stackName: 'new', version: 0 },
    ),
  },
  'HEAD /api/stacks/:organization/:project': { status: 200 },
  [`GET ${S}`]: {
    needs: 'running',

    status: 200,
    answer: each(
      {
        id: uuid,
        ...named,
        version: 0,
        activeUpdate: uuid,
        currentOperation: { kind: 'update', author: text, started: seconds },
      },
      { ...named, version: 0, activeUpdate: uuid },
    ),
  },
  [`DELETE ${S}`]: { status: 204 },
  [`POST ${S}/rename`]: {
    body: apart(
      { newName: 'next', newProject: 'other' },
      ({ stack }: Scene) => ({ newName: `${stack.organization}/other/next` }),
      ownInContract,
    ),
    status: 204,
  },
  [`PATCH ${S}/tags`]: {
    body: apart({ a: 'b' }, { tags: { a: 'b' } }, ownInContract),
    status: 204,
  },
  [`POST ${S}/tags`]: { beyond: true, body: same({ name: 'a', value: 'b' }), status: 204 },
  [`PATCH ${S}/tags/:tag`]: { needs: 'tagged', beyond: true, body: same({ value: 'c' }), status: 204 },
  [`DELETE ${S}/tags/:tag`]: { beyond: true, status: 204 },
  [`GET ${S}/policypacks`]: { beyond: true, status: 200, answer: alike({ requiredPolicies: [] }) },
  [`GET ${packs}`]: {
    needs: 'published',
    beyond: true,
    status: 200,
    answer: alike({
      policyPacks: [{ name: 'pack', displayName: 'A pack', versions: [1], versionTags: ['1.0.0'] }],
    }),
  },
  [`POST ${packs}`]: {
    beyond: true,
    body: same({ name: 'pack', displayName: 'A pack', versionTag: '1.0.0', policies: [], runtime: 'nodejs' }),
    status: 200,
    answer: alike({ version: 1, uploadURI: text, requiredHeaders: { 'Content-Type': 'application/octet-stream' } }),
  },
  [`GET ${packs}/:pack/latest`]: { needs: 'published', beyond: true, status: 200, answer: alike(packVersion) },
  [`GET ${packs}/:pack/versions/:versionTag`]: {
    needs: 'published',
    beyond: true,
    status: 200,
    answer: alike(packVersion),
  },
  [`DELETE ${packs}/:pack`]: { needs: 'published', beyond: true, status: 204 },
  [`DELETE ${packs}/:pack/versions/:versionTag`]: { needs: 'published', beyond: true, status: 204 },
  [`POST ${packs}/:pack/versions/:versionTag/complete`]: { needs: 'uploaded', beyond: true, status: 204 },
  [`GET ${packs}/:pack/versions/:versionTag/schema`]: {
    needs: 'published',
    beyond: true,
    status: 200,
    answer: alike({ configSchema: { 'no-buckets': expect.any(Object) } }),
  },
  [`GET ${groups}`]: {
    beyond: true,
    status: 200,
    answer: alike({ policyGroups: [{ ...group, numStacks: 1, numEnabledPolicyPacks: 0 }] }),
  },
  [`POST ${groups}`]: {
    beyond: true,
    body: same({ name: 'next', entityType: 'stacks', mode: 'preventative' }),
    status: 204,
  },
  [`GET ${groups}/:group`]: {
    needs: 'grouped',
    beyond: true,
    status: 200,
    answer: alike({ ...group, name: 'group', isOrgDefault: false, stacks: [], appliedPolicyPacks: [], accounts: [] }),
  },
  [`PATCH ${groups}/:group`]: { needs: 'grouped', beyond: true, body: same({ newName: 'next' }), status: 204 },
  [`PATCH ${groups}/:group/batch`]: { needs: 'grouped', beyond: true, body: same([{ newName: 'next' }]), status: 204 },
  [`DELETE ${groups}/:group`]: { needs: 'grouped', beyond: true, status: 204 },
  [`GET ${S}/export`]: {
    status: 200,
    answer: alike({ version: 3, deployment: { resources: null } }),
  },
  [`GET ${S}/export/:stackVersion`]: { needs: 'imported', status: 200, answer: alike(document) },
  [`POST ${S}/import`]: {
    body: same(document),
    status: 200,
    answer: each({ updateId: uuid, updateID: uuid }, { updateID: uuid }),
  },
  [`POST ${S}/encrypt`]: {
    beyond: true,
    body: same({ plaintext: 'YQ==' }),
    status: 200,
    answer: alike({ ciphertext: text }),
  },
  [`POST ${S}/decrypt`]: {
    needs: 'secret',
    beyond: true,
    body: same(({ ciphertext }: Scene) => ({ ciphertext })),
    status: 200,
    answer: alike({ plaintext: 'YQ==' }),
  },
  [`POST ${S}/batch-encrypt`]: {
    beyond: true,
    body: same({ plaintexts: ['YQ=='] }),
    status: 200,
    answer: alike({ ciphertexts: [text] }),
  },
  [`POST ${S}/batch-decrypt`]: {
    needs: 'secret',
    beyond: true,
    body: same(({ ciphertext }: Scene) => ({ ciphertexts: [ciphertext] })),
    status: 200,
    answer: alike({ plaintexts: expect.any(Object) }),
  },
  [`POST ${S}/decrypt/log-decryption`]: { beyond: true, body: same({ secretName: 's' }), status: 204 },
  [`POST ${S}/decrypt/log-batch-decryption`]: {
    beyond: true,
    body: same({ commandName: 'c' }),
    status: 204,
  },
  ...Object.fromEntries(updateKinds.map((kind) => [`POST ${S}/${kind}`, createUpdate])),
  [`POST ${S}/begin-update`]: {
    beyond: true,
    body: same({ updateKind: 'update', program: { ...program, config }, tags: { a: 'b' }, journalVersion: 2 }),
    status: 200,
    answer: alike({
      updateID: uuid,
      ...{ requiredPolicies: [], messages: [], version: 1, token: text, tokenExpiration: seconds, journalVersion: 2 },
      stack: { id: uuid, ...named, tags: { a: 'b' }, version: 0, activeUpdate: uuid },
    }),
  },
  [`GET ${S}/updates`]: {
    needs: 'ended',

    status: 200,
    answer: each({ updates: [historyOf('import', 1)] }, { updates: [historyOf('preview', 1), historyOf('import', 1)] }),
  },
  [`GET ${S}/updates/latest`]: {
    needs: 'ended',

    status: 200,
    answer: each({ info: historyOf('import', 1) }, { info: historyOf('preview', 1) }),
  },
  [`GET ${S}/updates/latest/previews`]: {
    needs: 'ended',
    beyond: true,
    status: 200,
    answer: alike({ updates: [{ updateID: uuid }] }),
  },
  'GET /api/orgs/:organization/auditlogs': {
    beyond: true,
    status: 200,
    answer: alike({ auditLogEvents: expect.arrayContaining([expect.objectContaining({ event: 'stack.create' })]) }),
  },
  'GET /api/orgs/:organization/auditlogs/export': {
    beyond: true,
    query: '?format=jsonl&eventType=audit.export',
    status: 200,
    contentType: 'application/jsonl',
  },
  'GET /api/orgs/:organization/auditlogs/v2': {
    beyond: true,
    query: '?eventFilter=stack.create',
    status: 200,
    answer: alike({ auditLogEvents: expect.arrayContaining([expect.objectContaining({ event: 'stack.create' })]) }),
  },
  'GET /api/orgs/:organization/auditlogs/v2/export': {
    beyond: true,
    query: '?format=jsonl&eventFilter=audit.export',
    status: 200,
    contentType: 'application/jsonl',
  },
  [`POST ${U}`]: {
    needs: 'created',

    body: apart({ tags: { a: 'b' }, journalVersion: 1 }, {}, bothTaken),
    status: 200,
    answer: each(
      { version: 2, token: text, tokenExpiration: seconds, journalVersion: 1 },
      { version: 1, token: text, tokenExpiration: isoTime },
    ),
  },
  [`GET ${U}`]: {
    needs: 'ended',

    status: 200,
    answer: each(
      {
        updateID: uuid,
        status: 'succeeded',
        kind: 'preview',
        result: 'succeeded',
        startTime: seconds,
        endTime: seconds,
        version: 1,
        message: '',
        events: [],
        continuationToken: null,
      },
      {
        status: 'succeeded',
        kind: 'preview',
        result: 'succeeded',
        startTime: seconds,
        endTime: seconds,
        version: 1,
        message: '',
      },
    ),
  },
  [`GET ${U}/events`]: {
    needs: 'ended',

    query: '?continuationToken=5',
    status: 200,
    answer: each({ events: [], continuationToken: null }, { events: [], continuationToken: '5' }),
  },
  [`POST ${U}/cancel`]: { needs: 'running', status: 204 },
  [`POST ${U}/complete`]: { needs: 'running', body: same({ status: 'succeeded' }), status: 204 },
  [`POST ${U}/renew_lease`]: {
    needs: 'running',

    body: apart({ token: '', duration: 300 }, { duration: 300 }, bothTaken),
    status: 200,
    answer: each({ token: text, tokenExpiration: seconds }, { token: text, tokenExpiration: isoTime }),
  },
  [`PATCH ${U}/checkpoint`]: {
    needs: 'running',

    body: apart(
      { isInvalid: false, ...document },
      { deployment: document.deployment, sequenceNumber: 1, version: 3 },
      bothTaken,
    ),
    status: 204,
  },
  [`PATCH ${U}/checkpointverbatim`]: {
    needs: 'running',

    body: apart(
      { ...verbatim, untypedDeployment: document },
      { ...verbatim, deployment: document.deployment },
      bothRefused,
    ),
    status: 204,
  },
  [`PATCH ${U}/checkpointdelta`]: {
    needs: 'saved',
    // The contract does not specify the body.
    beyond: true,
    body: same({
      version: 3,
      checkpointHash: createHash('sha256').update(base).digest('hex'),
      sequenceNumber: 2,
      deploymentDelta: [],
    }),
    status: 204,
  },
  [`PATCH ${U}/journalentries`]: {
    needs: 'journal',
    beyond: true,
    body: same({ entries: [{ version: 1, kind: 0, sequenceID: 1, operationID: 1 }] }),
    status: 204,
  },
  [`POST ${U}/events/batch`]: {
    needs: 'running',

    body: same({ events: [{ sequence: 0, timestamp: 1, cancelEvent: {} }] }),
    status: 204,
  },
};
