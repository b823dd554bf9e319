import { parseArgs } from 'node:util';
import { createBlobRepository } from '../shared/documents/blob-repository.ts';
import { createIdentityRepository } from '../shared/identity/identity-repository.ts';
import { type Config, ConfigError } from '../shared/platform/config/config.ts';
import { readMasterKeys } from '../shared/platform/config/data-dir.ts';
import { type Database, openDatabase } from '../shared/platform/db/database.ts';
import { mapDatabaseError } from '../shared/platform/db/sqlstate.ts';
import { createLogger } from '../shared/platform/logger/logger.ts';
import { createEncryptionKeyRepository, type KeyScope } from '../shared/secrets/encryption-key-repository.ts';
import { KeyRing } from '../shared/secrets/key-ring.ts';
import { checkKeys, type LostKey, rewrapKeys } from '../shared/secrets/rewrap-keys.ts';
import { rotateKey, rotateStackKeys } from '../shared/secrets/rotate-data-keys.ts';
import { parseQualifiedName } from '../shared/stacks/names.ts';
import { createStackRepository } from '../shared/stacks/stack-repository.ts';
import { reachDatabase } from './admin-database.ts';

/** Lines of lost keys that are printed; there may be one for each stack. */
const mostLines = 1_000;

type Print = (line: string) => void;
type Run = (db: Database, ring: KeyRing, args: string[], print: Print) => Promise<string | null>;

const commands: Readonly<Record<string, Run>> = {
  'rotate-data-keys': rotate,
  'rewrap-keys': (db, ring, args, print) => {
    parseArgs({ args, options: {} });
    return rewrap(db, ring, print);
  },
  'check-keys': (db, ring, args, print) => {
    parseArgs({ args, options: {} });
    return check(db, ring, print);
  },
};

export function isKeyCommand(command: string): boolean {
  return Object.hasOwn(commands, command);
}

/** Runs a command that needs the master keys; returns the exit code. Throws ConfigError without them. */
export async function runKeyCommand(
  config: Config,
  command: string,
  args: string[],
  print: Print = console.log,
): Promise<number> {
  const masterKeys = config.secrets.masterKeys ?? readMasterKeys(config.dataDir);
  if (masterKeys === null)
    throw new ConfigError('There are no master keys: set HOLDFAST_MASTER_KEYS as the servers have it');
  const ring = new KeyRing(masterKeys);
  const url = await reachDatabase(config, createLogger({ level: config.logLevel }, process.stderr));
  const db = await openDatabase({ ...config.database, url, poolSize: 2 });
  try {
    const problem = await (commands[command] as Run)(db, ring, args, print);
    if (problem === null) return 0;
    console.error(`holdfast: ${problem}`);
    return 1;
  } catch (error) {
    throw mapDatabaseError(error);
  } finally {
    await db.close();
  }
}

async function rotate(db: Database, ring: KeyRing, args: string[], print: Print): Promise<string | null> {
  const { values } = parseArgs({
    args,
    options: {
      stack: { type: 'string' },
      organization: { type: 'string' },
      documents: { type: 'boolean' },
      all: { type: 'boolean' },
    },
  });
  if (Object.keys(values).length !== 1) return 'give one of --stack, --organization, --documents and --all';
  const keys = createEncryptionKeyRepository(db);
  const scope = await scopeOf(db, values);
  if (typeof scope === 'string') return scope;
  if (scope) print(`New data keys for ${await rotateStackKeys(keys, ring, scope)} stacks.`);
  if (values.documents || values.all) {
    const isRotated = await rotateKey(keys, ring, null);
    print(isRotated ? 'New data key for documents.' : 'Documents have no data key: none was ever sealed.');
  }
  return null;
}

/** Null: no stacks. A string: what is wrong. */
async function scopeOf(
  db: Database,
  values: { stack?: string | undefined; organization?: string | undefined; all?: boolean | undefined },
): Promise<KeyScope | string | null> {
  if (values.all) return { kind: 'all-stacks' };
  if (values.stack !== undefined) {
    const ref = parseQualifiedName(values.stack);
    if (!ref) return `${JSON.stringify(values.stack)} is not of the form organization/project/stack`;
    const stack = await createStackRepository(db).find(ref);
    return stack ? { kind: 'stack', stackId: stack.id } : `there is no stack ${values.stack}`;
  }
  if (values.organization === undefined) return null;
  const organization = await createIdentityRepository(db).findOrganization(values.organization);
  if (!organization) return `there is no organization ${JSON.stringify(values.organization)}`;
  return { kind: 'organization', organizationId: organization.id };
}

async function rewrap(db: Database, ring: KeyRing, print: Print): Promise<string | null> {
  const { rewrapped, lost } = await rewrapKeys(createEncryptionKeyRepository(db), ring);
  print(`Rewrapped ${rewrapped} data keys with master key ${ring.currentId}.`);
  return lost.length === 0 ? null : `${lost.length} data keys were not changed:\n${linesOf(lost)}`;
}

async function check(db: Database, ring: KeyRing, print: Print): Promise<string | null> {
  const { byMasterKey, lost } = await checkKeys(createEncryptionKeyRepository(db), ring);
  for (const [id, count] of byMasterKey) print(`Master key ${id}: ${count} data keys.`);
  for (const { version, keyId, count } of await createBlobRepository(db).countBySealingKey()) {
    print(`Blobs ${keyId === null ? 'that are not sealed' : `sealed by data key ${version} of documents`}: ${count}.`);
  }
  return lost.length === 0 ? null : `${lost.length} data keys cannot be unwrapped:\n${linesOf(lost)}`;
}

function linesOf(lost: readonly LostKey[]): string {
  const lines = lost
    .slice(0, mostLines)
    .map(({ owner, version, reason }) => `  ${owner}, version ${version}: ${reason}`);
  return [...lines, ...(lost.length > mostLines ? [`  and ${lost.length - mostLines} more`] : [])].join('\n');
}
