import path from 'node:path';
import { parseArgs } from 'node:util';
import { createIdentityRepository } from './shared/identity/identity-repository.ts';
import { type Role, roles } from './shared/identity/roles.ts';
import { type Config, ConfigError } from './shared/platform/config/config.ts';
import { readMasterKeys } from './shared/platform/config/data-dir.ts';
import { mintToken } from './shared/platform/crypto/secret-token.ts';
import { type Database, openDatabase } from './shared/platform/db/database.ts';
import { readRunningUrl } from './shared/platform/db/embedded-postgres.ts';
import { createEncryptionKeyRepository } from './shared/secrets/encryption-key-repository.ts';
import { KeyRing } from './shared/secrets/key-ring.ts';
import { rewrapKeys } from './shared/secrets/rewrap-keys.ts';
import { isLogin, isOrganizationName } from './shared/stacks/names.ts';

const usage = `Usage: holdfast admin <command>

  create-organization <organization>
  create-user <login> [--organization <organization>] [--role viewer|member|admin] [--site-admin]
  create-token <login> [--description <text>] [--days <days>]
  list                     organizations with members, and tokens
  revoke <token id>
  rewrap-keys              wraps the keys of all stacks by the first master key, so that the others can be retired

The commands talk to the database: HOLDFAST_DATABASE_URL, or the embedded one of a running server (HOLDFAST_DATA_DIR).`;

type Identity = ReturnType<typeof createIdentityRepository>;

/** Runs one admin command; returns the exit code. */
export async function runAdmin(config: Config, args: string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === undefined || command === 'help') {
    console.log(usage);
    return command === undefined ? 2 : 0;
  }
  const { values, positionals } = parseArgs({
    args: rest,
    allowPositionals: true,
    options: {
      organization: { type: 'string' },
      role: { type: 'string', default: 'member' },
      'site-admin': { type: 'boolean' },
      description: { type: 'string', default: '' },
      days: { type: 'string' },
    },
  });
  const url = config.database.url ?? (await readRunningUrl(path.join(config.dataDir, 'postgres')));
  if (!url) throw new ConfigError(`There is neither HOLDFAST_DATABASE_URL nor a server running on ${config.dataDir}`);
  const db = await openDatabase({ url, poolSize: 2, statementTimeoutMs: 30_000 });
  try {
    const problem =
      command === 'rewrap-keys'
        ? await rewrap(db, config)
        : await runCommand(createIdentityRepository(db), command, positionals[0] ?? '', values);
    if (problem === null) return 0;
    console.error(`holdfast: ${problem}`);
    return 1;
  } finally {
    await db.close();
  }
}

interface Values {
  readonly organization?: string | undefined;
  readonly role: string;
  readonly 'site-admin'?: boolean | undefined;
  readonly description: string;
  readonly days?: string | undefined;
}

/** Returns what is wrong, or null. */
async function runCommand(identity: Identity, command: string, name: string, values: Values): Promise<string | null> {
  switch (command) {
    case 'create-organization':
      return createOrganization(identity, name);
    case 'create-user':
      return createUser(identity, name, values);
    case 'create-token':
      return createToken(identity, name, values);
    case 'list':
      return list(identity);
    case 'revoke':
      if (!/^[0-9a-f-]{36}$/.test(name) || !(await identity.revokeToken(name)))
        return `there is no live token with the id ${JSON.stringify(name)}`;
      console.log('Revoked.');
      return null;
    default:
      return `there is no admin command ${JSON.stringify(command)}\n\n${usage}`;
  }
}

async function rewrap(db: Database, config: Config): Promise<string | null> {
  const text = config.secrets.masterKeys ?? readMasterKeys(config.dataDir);
  if (text === null) return 'there are no master keys: set HOLDFAST_MASTER_KEYS as the servers have it';
  const ring = new KeyRing(text);
  const { rewrapped, failures } = await rewrapKeys(createEncryptionKeyRepository(db), ring);
  console.log(`Rewrapped the keys of ${rewrapped} stacks by master key ${ring.currentId}.`);
  if (failures.length === 0) return null;
  return [`${failures.length} keys were left as they are:`, ...new Set(failures)].slice(0, 20).join('\n  ');
}

async function createOrganization(identity: Identity, name: string): Promise<string | null> {
  if (!isOrganizationName(name)) return `${JSON.stringify(name)} is not a valid organization name`;
  const { created } = await identity.ensureOrganization(name);
  console.log(created ? `Made organization ${name}.` : `Organization ${name} exists.`);
  return null;
}

async function createUser(identity: Identity, login: string, values: Values): Promise<string | null> {
  if (!isLogin(login)) return `${JSON.stringify(login)} is not a valid login`;
  if (!roles.includes(values.role as Role)) return `there is no role ${JSON.stringify(values.role)}`;
  const organization = values.organization === undefined ? null : await identity.findOrganization(values.organization);
  if (values.organization !== undefined && !organization)
    return `there is no organization ${JSON.stringify(values.organization)}`;
  const user = await identity.ensureUser(login);
  if (values['site-admin']) await identity.setSiteAdmin(user.id, true);
  if (organization) await identity.setMembership(organization.id, user.id, values.role as Role);
  console.log(organization ? `User ${login} is ${values.role} in ${organization.name}.` : `User ${login} exists.`);
  return null;
}

async function createToken(identity: Identity, login: string, values: Values): Promise<string | null> {
  const user = await identity.findUser(login);
  if (!user) return `there is no user ${JSON.stringify(login)}`;
  if (values.days !== undefined && !/^[1-9]\d{0,4}$/.test(values.days)) return '--days must be a whole number of days';
  const expiresAt = values.days === undefined ? null : new Date(Date.now() + Number(values.days) * 86_400_000);
  const { token, hash } = mintToken('hf-');
  await identity.insertToken({ userId: user.id, hash, description: values.description, expiresAt });
  console.log(token);
  return null;
}

async function list(identity: Identity): Promise<null> {
  console.log('Organizations and members:');
  for (const { organization, login, role } of await identity.listMembers()) {
    console.log(`  ${organization}${login === null ? '' : `  ${login}  ${role}`}`);
  }
  console.log('Tokens (id, owner, made, expires, last used, description):');
  for (const token of await identity.listTokens()) {
    const times = [token.createdAt, token.expiresAt, token.lastUsedAt].map((time) => time?.toISOString() ?? 'never');
    console.log(`  ${token.id}  ${token.login}  ${times.join('  ')}  ${token.description}`);
  }
  return null;
}
