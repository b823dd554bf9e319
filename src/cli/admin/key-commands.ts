import type { Command } from 'commander';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import { ConfigError } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { EncryptedSecrets } from '../../shared/secrets/encrypted-secrets.ts';
import { createEncryptionKeyRepository, type KeyScope } from '../../shared/secrets/encryption-key-repository.ts';
import type { KeyRing } from '../../shared/secrets/key-ring.ts';
import { createMasterKeyRepository } from '../../shared/secrets/master-key-repository.ts';
import { openMasterKeys, type Registration, type WrappedMasterKey } from '../../shared/secrets/open-master-keys.ts';
import { parseQualifiedName } from '../../shared/stacks/names.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { createBlobRepository } from '../../shared/state/checkpoints/blob-repository.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { operator } from './operator-name.ts';
import { checkKeys, type LostKey, renewWrapping, rewrapKeys } from './rewrap-keys.ts';
import { checkSecrets, rewrapSecrets } from './rewrap-secrets.ts';
import { rotateKey, rotateStackKeys } from './rotate-data-keys.ts';

/** There may be a lost key per stack. */
const maxLines = 1_000;

interface RotateOptions {
  readonly stack?: string;
  readonly organization?: string;
  readonly documents?: true;
  readonly all?: true;
}

export function addKeyCommands(admin: Command, open: OpenSession): void {
  admin
    .command('rotate-data-keys')
    .description('create new data keys for stacks, or for documents in the blob store; existing data stays readable')
    .option('--stack <organization/project/stack>', 'for this stack')
    .option('--organization <organization>', 'for all stacks of this organization')
    .option('--documents', 'for the documents in the blob store')
    .option('--all', 'for all stacks and the documents')
    .action((options: RotateOptions) => withKeys(open, 'first', (db, ring) => rotate(db, ring, options)));
  admin
    .command('rewrap-keys')
    .description(
      'rewrap all data keys and webhook secrets with the first master key, so that the others can be retired, and master keys with their KMS',
    )
    .action(() => withKeys(open, 'first', rewrap));
  admin
    .command('check-keys')
    .description('count what each master key encrypts, and list the stacks and webhooks whose keys cannot be unwrapped')
    .option(...jsonOption)
    .action(({ json }: { readonly json?: true }) => withKeys(open, false, (db, ring) => check(db, ring, json)));
}

type KeyWork = (db: Database, ring: KeyRing, wrapped: readonly WrappedMasterKey[]) => Promise<void>;

/** Throws ConfigError without master keys. */
async function withKeys(open: OpenSession, registers: Registration, work: KeyWork): Promise<void> {
  const session = open();
  const { config, masterKeys, startWait } = session;
  if (masterKeys === null)
    throw new ConfigError('There are no master keys: set HOLDFAST_MASTER_KEYS to the same value as on the servers');
  await session.withDatabase(async (db) => {
    const rows = createMasterKeyRepository(db);
    const { ring, wrapped } = await openMasterKeys(masterKeys, { config, rows, wait: startWait, registers });
    await work(db, ring, wrapped);
  });
}

async function rotate(db: Database, ring: KeyRing, options: RotateOptions): Promise<void> {
  if (Object.keys(options).length !== 1)
    throw new CommandRefusedError('use one of --stack, --organization, --documents and --all');
  const keys = createEncryptionKeyRepository(db);
  const scope = await scopeOf(db, options);
  const organization = options.organization ?? options.stack?.split('/')[0] ?? null;
  await record(db, 'key.rotate', { organization, object: options.stack ?? '', details: { ...options } });
  if (scope) console.log(`New data keys for ${await rotateStackKeys(keys, ring, scope)} stacks.`);
  if (options.documents || options.all) {
    const isRotated = await rotateKey(keys, ring, null);
    console.log(
      isRotated ? 'New data key for documents.' : 'Documents have no data key: no document has been encrypted yet.',
    );
  }
}

/** Recorded before the work, which takes many transactions. */
async function record(
  db: Database,
  action: AuditAction,
  event: {
    readonly organization: string | null;
    readonly object: string;
    readonly details: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  await createAuditRepository(db).insert(operatorSource(operator()), { action, ...event });
}

async function scopeOf(db: Database, options: RotateOptions): Promise<KeyScope | null> {
  if (options.all) return { kind: 'all-stacks' };
  if (options.stack !== undefined) {
    const ref = parseQualifiedName(options.stack);
    if (!ref)
      throw new CommandRefusedError(`${JSON.stringify(options.stack)} is not of the form organization/project/stack`);
    const stack = await createStackRepository(db).find(ref);
    if (!stack) throw new CommandRefusedError(`there is no stack ${options.stack}`);
    return { kind: 'stack', stackId: stack.id };
  }
  if (options.organization === undefined) return null;
  const organization = await createIdentityRepository(db).findOrganization(options.organization);
  if (!organization) throw new CommandRefusedError(`there is no organization ${JSON.stringify(options.organization)}`);
  return { kind: 'organization', organizationId: organization.id };
}

async function rewrap(db: Database, ring: KeyRing, wrapped: readonly WrappedMasterKey[]): Promise<void> {
  await record(db, 'key.rewrap', { organization: null, object: '', details: { masterKeyId: ring.currentId } });
  const { rewrapped, lost } = await rewrapKeys(createEncryptionKeyRepository(db), ring);
  console.log(`Rewrapped ${rewrapped} data keys with master key ${ring.currentId}.`);
  const webhooks = await rewrapSecrets(db, new EncryptedSecrets(ring));
  if (webhooks.done > 0) console.log(`Encrypted ${webhooks.done} secrets of webhooks with it.`);
  lost.push(...webhooks.lost);
  await renewWrapping(createMasterKeyRepository(db), wrapped);
  for (const { id, kms } of wrapped) console.log(`Master key ${id} was rewrapped by ${kms.name}.`);
  if (lost.length > 0) throw new CommandRefusedError(`${lost.length} data keys were not changed:\n${linesOf(lost)}`);
}

async function check(db: Database, ring: KeyRing, json: true | undefined): Promise<void> {
  const { byMasterKey, lost } = await checkKeys(createEncryptionKeyRepository(db), ring);
  const webhooks = await checkSecrets(db, new EncryptedSecrets(ring));
  lost.push(...webhooks.lost);
  const counts = await createBlobRepository(db).countByEncryptionKey();
  const blobs = counts.map(({ count, keyId, version }) => ({ dataKey: keyId === null ? null : version, count }));
  const ids = new Set([...byMasterKey.keys(), ...webhooks.byMasterKey.keys()]);
  const masterKeys = [...ids].map((id) => ({
    id,
    dataKeys: byMasterKey.get(id) ?? 0,
    webhookSecrets: webhooks.byMasterKey.get(id) ?? 0,
  }));
  const lines = [
    ...masterKeys.map(
      ({ dataKeys, id, webhookSecrets }) =>
        `Master key ${id}: ${dataKeys} data keys${webhookSecrets === 0 ? '' : `, ${webhookSecrets} secrets of webhooks`}.`,
    ),
    ...blobs.map(
      ({ count, dataKey }) =>
        `Blobs ${dataKey === null ? 'without encryption' : `encrypted with data key ${dataKey} of documents`}: ${count}.`,
    ),
  ];
  const found = { masterKeys, webhookSecrets: webhooks.done, blobs, lost };
  printResult('admin check-keys', found, { json, text: lines.join('\n') });
  if (lost.length > 0) throw new CommandRefusedError(`${lost.length} data keys cannot be unwrapped:\n${linesOf(lost)}`);
}

function linesOf(lost: readonly LostKey[]): string {
  const lines = lost
    .slice(0, maxLines)
    .map(({ owner, version, reason }) => `  ${owner}, version ${version}: ${reason}`);
  return [...lines, ...(lost.length > maxLines ? [`  and ${lost.length - maxLines} more`] : [])].join('\n');
}
