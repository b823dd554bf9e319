import type { TSchema } from 'typebox';
import { Check } from 'typebox/value';

type Schema = Readonly<Record<string, unknown>>;

/** The first value that the schema of a member allows is used. */
const values: readonly (readonly [value: unknown, names: string])[] = [
  ['acme', 'organization orgName organizationName GitHubLogin orgId'],
  ['website', 'project projectName routingProject newProject'],
  ['website/*', 'stacks'],
  ['production', 'stack stackName newName'],
  ['ada', 'login githubLogin user userLogin userName member author createdBy askedBy'],
  ['grace', 'approvedBy invitedBy setBy setLast appliedBy deletedBy grantedBy'],
  ['Ada Lovelace', 'displayName formatted'],
  ['platform', 'team teamName'],
  ['member', 'role userRole'],
  ['read', 'permission permissions'],
  ['update', 'kind operation'],
  ['succeeded', 'result status outcome'],
  [
    '2026-11-28T12:00:00.000Z',
    'created modified lastModified deletedAt restorableUntil setAt askedAt approvedAt expiresAt',
  ],
  ['2026-11-28T12:00:00.000Z', 'appliedAt tokenExpiration'],
  [1_795_867_200, 'startTime started timestamp created lastUpdate lastUsed'],
  [1_795_867_260, 'endTime expires previousExpires tokenExpiration'],
  ['a94a8fe5ccb19ba61c4c0873d391e987982fbbd3', 'commit'],
  ['urn:pulumi:production::website::aws:s3/bucket:Bucket::assets', 'urn parent.urn parent_urn'],
  ['aws:s3/bucket:Bucket', 'type'],
  ['https://hooks.example.com/pulumi', 'payloadUrl requestUrl'],
  ['https://token.actions.githubusercontent.com', 'url issuer'],
  ['urn:pulumi:org:acme', 'audience'],
  ['', 'avatarUrl secretCiphertext'],
  ['1.2.0', 'versionTag'],
  ['c2VjcmV0', 'plaintext plaintexts'],
  ['AAECAwQ=', 'ciphertext ciphertexts'],
  ['ada@example.com', 'email'],
  ['Deploy the website', 'message'],
  ['Release 42', 'reason'],
  ['For deployments', 'description'],
  ['192.0.2.7', 'sourceIP'],
  ['stack.create', 'event'],
  ['MTIz', 'continuationToken next cursor'],
  ['3.276.0', 'latestVersion oldestWithoutWarning latestDevVersion'],
  ['batch-encrypt', 'capability'],
  ['warning', 'severity'],
  ['hf-…', 'tokenValue token access_token'],
  ['https://holdfast.example.com/policy-packs/7', 'packLocation uploadURI'],
  ['https://holdfast.example.com/scim/v2/acme/Users/7', 'location'],
  ['read', 'defaultPermissions authorizedPermissions'],
  ['content-type: application/json', 'requestHeaders responseHeaders'],
  ['{"kind":"stack_update"}', 'payload'],
  ['raw', 'format'],
  ['update_succeeded', 'filters'],
  ['stacks', 'groups'],
  ['delivered', 'state'],
  ['once', 'replay'],
  ['allow', 'decision'],
  ['organization', 'tokenType'],
  ['bearer', 'token_type'],
  [200, 'responseCode'],
  [102, 'permission'],
  ['acme', 'organizations'],
  ['ask #platform', 'note'],
  ['aws', 'package'],
  ['s3/bucket', 'module'],
  ['1.2.0', 'versionTags'],
  ['Ada', 'givenName'],
  ['Lovelace', 'familyName'],
  ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 'checkpointHash'],
];
const id = '01990d2e-7c1a-7a52-9c1f-2f0e6d3b8a10';

function namedValue(schema: Schema, name: string): unknown {
  const fits = (value: unknown) => Check(schema as TSchema, value);
  const [named] = values.find(([value, names]) => names.split(' ').includes(name) && fits(value)) ?? [];
  return named ?? (/(^id|I[dD])$/.test(name) && fits(id) ? id : undefined);
}

/** The example of a request has only the required members. */
export function exampleOf(schema: Schema, { isRequest = false, name = '' } = {}): unknown {
  if (schema['x-example'] !== undefined) return schema['x-example'];
  if ('const' in schema) return schema['const'];
  const alternatives = schema['anyOf'] as Schema[] | undefined;
  if (alternatives) return exampleOf(alternatives[0] as Schema, { isRequest, name });
  if (schema['enum']) return (schema['enum'] as unknown[])[0];
  const named = namedValue(schema, name);
  if (named !== undefined) return named;
  switch (schema['type']) {
    case 'object':
      return objectExample(schema, isRequest);
    case 'array':
      return Array.from({ length: Number(schema['minItems'] ?? 1) }, () =>
        exampleOf(schema['items'] as Schema, { isRequest, name }),
      );
    case 'integer':
    case 'number':
      return Number(schema['minimum'] ?? 1);
    case 'boolean':
      return false;
    case 'null':
      return null;
    case 'string':
      return schema['format'] === 'date-time' ? '2026-11-28T12:00:00.000Z' : name.toLowerCase() || 'text';
    default:
      return {};
  }
}

function objectExample(schema: Schema, isRequest: boolean): object {
  const required = new Set(schema['required'] as string[] | undefined);
  const members = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
  return Object.fromEntries(
    members
      .filter(([name]) => !isRequest || required.has(name))
      .map(([name, member]) => [name, exampleOf(member, { isRequest, name })]),
  );
}
