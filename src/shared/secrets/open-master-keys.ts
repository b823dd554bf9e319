import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Config } from '../platform/config/config.ts';
import { repeatAtStart } from '../platform/db/postgres-start.ts';
import { codeOf } from '../platform/errors/causes.ts';
import { type Kms, type KmsAccess, KmsError, VaultTokenMissingError } from '../platform/kms/kms.ts';
import { openKms } from '../platform/kms/open-kms.ts';
import { type StartWait, untilAvailable, type Verdict } from '../platform/lifecycle/start-wait.ts';
import { KeyRing, MasterKeyError, unusedKey } from './key-ring.ts';
import { parseMasterKeys } from './master-key-list.ts';
import type { MasterKeyRepository, MasterKeyRow } from './master-key-repository.ts';

type KnownParts = MasterKeyParts & { readonly registers: boolean };

const keyBytes = 32;
const requestMs = 5_000;
/** Data keys and secrets that are tried for a master key without a canary. Some may be damaged. */
const triedUses = 20;

export interface OpenedMasterKeys {
  readonly ring: KeyRing;
  /** Only keys wrapped by a KMS. */
  readonly wrapped: readonly WrappedMasterKey[];
}

export interface WrappedMasterKey {
  readonly id: string;
  readonly kms: Kms;
  readonly bytes: Buffer;
  readonly canary: Buffer;
}

/**
 * Whether keys under new ids are recorded, and created in their KMS. False for a process that only reads: its key may be a trial. `first`
 * is for a command that encrypts: only if no key has been used yet; otherwise, servers must know the wrapping key.
 */
export type Registration = boolean | 'first';

export interface MasterKeyParts {
  readonly config: Pick<Config, 'kms' | 'secrets'>;
  readonly rows: MasterKeyRepository;
  readonly wait: StartWait;
  readonly registers: Registration;
}

/**
 * A key in a KMS is created when its id is first used, and stored as wrapped by the KMS; from then on the process has it in memory and does
 * not call the KMS again. A process that does not register omits a key that does not exist yet, and wraps nothing with a new one. Throws
 * MasterKeyError if a key differs from the one used under its id, and PartUnavailableError if a KMS cannot be reached or does not unwrap a
 * key.
 */
export async function openMasterKeys(text: string, given: MasterKeyParts): Promise<OpenedMasterKeys> {
  const entries = parseMasterKeys(text);
  const registers = await mayRegister(entries[0]?.id ?? '', given);
  const parts = { ...given, registers };
  const keys = new Map<string, Buffer>();
  const wrapped: WrappedMasterKey[] = [];
  const access = kmsAccess(parts.config);
  for (const { bytes, id, kms } of entries) {
    if (kms === null) {
      keys.set(id, bytes);
      continue;
    }
    const opened = await openWrapped(id, await openKms(kms, access), parts);
    if (opened === null) continue;
    keys.set(id, opened.bytes);
    wrapped.push(opened);
  }
  if (keys.size === 0) throw new MasterKeyError('No server has used the master keys of HOLDFAST_MASTER_KEYS yet');
  const ring = new KeyRing(keys, new Map(wrapped.map(({ canary, id }) => [id, canary])));
  for (const id of keys.keys()) await repeatAtStart(() => checkCanary(ring, id, parts), parts.wait);
  if (!registers && !(await repeatAtStart(() => isUsed(ring.currentId, parts.rows), parts.wait))) ring.wrapNothing();
  return { ring, wrapped };
}

/** Throws MasterKeyError if a command would encrypt with a key that no server has. */
async function mayRegister(currentId: string, { registers, rows, wait }: MasterKeyParts): Promise<boolean> {
  if (registers !== 'first') return registers;
  if (await repeatAtStart(() => isUsed(currentId, rows), wait)) return false;
  if (await repeatAtStart(() => rows.hasNone(), wait)) return true;
  throw unusedKey(currentId);
}

async function isUsed(id: string, rows: MasterKeyRepository): Promise<boolean> {
  return (await rows.find(id)) !== null || (await rows.listUses(id, 1)).length > 0;
}

export function kmsAccess(config: MasterKeyParts['config']): KmsAccess {
  return { readVaultToken: () => readVaultToken(config), timeoutMs: requestMs };
}

/** A KMS wraps a master key for this context. */
export const kmsContext = (id: string): string => `master-key/${id}`;

/** Creates the key of a new id, but returns null if this process does not register keys. */
async function openWrapped(
  id: string,
  kms: Kms,
  { registers, rows, wait }: KnownParts,
): Promise<WrappedMasterKey | null> {
  const known = await repeatAtStart(() => rows.find(id), wait);
  if (!known && !registers) return null;
  const row = known ?? (await makeWrapped(id, kms, { rows, wait }));
  if (row.wrappedKey === null)
    throw new MasterKeyError(
      `Master key ${JSON.stringify(id)} was in HOLDFAST_MASTER_KEYS itself before; a key in a KMS needs another id`,
    );
  return { id, kms, bytes: await unwrapAtStart(id, kms, row, wait), canary: row.canary };
}

async function makeWrapped(
  id: string,
  kms: Kms,
  { rows, wait }: Pick<MasterKeyParts, 'rows' | 'wait'>,
): Promise<MasterKeyRow> {
  if ((await repeatAtStart(() => rows.listUses(id, 1), wait)).length > 0)
    throw new MasterKeyError(
      `Master key ${JSON.stringify(id)} is used already, but no KMS has wrapped it; a key in a KMS needs another id`,
    );
  const bytes = randomBytes(keyBytes);
  const attempt = async (): Promise<Buffer> => {
    const wrappedKey = await kms.wrap(bytes, kmsContext(id));
    // Nothing may depend on a key before the KMS has unwrapped it once.
    if (!(await kms.unwrap(wrappedKey, kmsContext(id))).equals(bytes))
      throw new KmsError(kms, 'refused', 'it does not unwrap what it has just wrapped');
    return wrappedKey;
  };
  const wrappedKey = await atStart(id, kms, attempt, { judge: judgeOf(kms, null), wait });
  const canary = new KeyRing(new Map([[id, bytes]])).makeCanary(id);
  await repeatAtStart(() => rows.insert({ id, wrappedKey, wrappedBy: kms.name, canary }), wait);
  // Another process may have been first.
  return (await repeatAtStart(() => rows.find(id), wait)) as MasterKeyRow;
}

function unwrapAtStart(id: string, kms: Kms, row: MasterKeyRow, wait: StartWait): Promise<Buffer> {
  const attempt = async (): Promise<Buffer> => {
    const bytes = await kms.unwrap(row.wrappedKey as Buffer, kmsContext(id));
    if (bytes.length !== keyBytes) throw new KmsError(kms, 'refused', `it gives ${bytes.length} bytes instead of 32`);
    return bytes;
  };
  return atStart(id, kms, attempt, { judge: judgeOf(kms, row.wrappedBy), wait });
}

function atStart<T>(
  id: string,
  kms: Kms,
  attempt: () => Promise<T>,
  { judge, wait }: { readonly judge: (error: unknown) => Verdict | null; readonly wait: StartWait },
): Promise<T> {
  return untilAvailable({ name: `Master key ${JSON.stringify(id)}: ${kms.name}`, attempt, judge }, wait);
}

function judgeOf(kms: Kms, wrappedBy: string | null): (error: unknown) => Verdict | null {
  return (error) => {
    if (!(error instanceof KmsError)) return null;
    if (error.fault === 'passing') return { passing: error.reason };
    const other = wrappedBy === null || wrappedBy === kms.name ? '' : `; the master key was wrapped by ${wrappedBy}`;
    const what = error.fault === 'mismatch' ? `it does not unwrap what is stored (${error.reason})` : error.reason;
    return { final: `${what}${other}` };
  };
}

/** Throws MasterKeyError if the key differs from the one used under this id. */
async function checkCanary(ring: KeyRing, id: string, { registers, rows }: KnownParts): Promise<void> {
  let row = await rows.find(id);
  if (!row) {
    const uses = await rows.listUses(id, triedUses);
    if (uses.length > 0 && !uses.some((use) => unwraps(ring, id, use))) throw otherKey(id);
    if (!registers) return;
    await rows.insert({ id, wrappedKey: null, wrappedBy: null, canary: ring.makeCanary(id) });
    // Another process may have been first, with another key.
    row = (await rows.find(id)) as MasterKeyRow;
  }
  if (!ring.matchesCanary(id, row.canary)) throw otherKey(id);
}

function unwraps(
  ring: KeyRing,
  id: string,
  use: { readonly owner: string | null; readonly encrypted: Buffer },
): boolean {
  try {
    ring.unwrap(id, use.encrypted, use.owner);
    return true;
  } catch (error) {
    if (error instanceof MasterKeyError) return false;
    throw error;
  }
}

const otherKey = (id: string): MasterKeyError =>
  new MasterKeyError(
    `Master key ${JSON.stringify(id)} in HOLDFAST_MASTER_KEYS is not the one that was used under this id before; a new key needs a new id`,
  );

function readVaultToken({ kms, secrets }: Pick<Config, 'kms' | 'secrets'>): string | null {
  if (kms.vaultTokenFile === null) return secrets.vaultToken;
  let token: string;
  try {
    token = readFileSync(kms.vaultTokenFile, 'utf8').trim();
  } catch (error) {
    const code = codeOf(error) ?? 'unknown error';
    const message = `HOLDFAST_VAULT_TOKEN_FILE cannot be read: ${code}`;
    if (code === 'ENOENT') throw new VaultTokenMissingError(message, { cause: error });
    throw new MasterKeyError(message, { cause: error });
  }
  if (token === '') throw new VaultTokenMissingError('HOLDFAST_VAULT_TOKEN_FILE is empty');
  return token;
}
