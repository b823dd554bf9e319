import { createHash } from 'node:crypto';
import { hasPermission, permits } from '../../shared/access/permissions.ts';
import type { LockedAccess } from '../../shared/identity/identity-repository.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import { PayloadTooLargeError } from '../../shared/platform/errors/errors.ts';
import { nextSlice, Slices, timeSliceBytes } from '../../shared/platform/slices/slices.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { missingPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import type { EncodedValues } from './encoded-values.ts';

/** The fixed cost of a value, in addition to its bytes. */
const overheadBytes = 1024;

/** Longer names of secrets are cut in the audit log. */
const maxNameChars = 300;

export class SecretService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** Returns ciphertexts in the order of the plaintexts. Throws PayloadTooLargeError. */
  async encrypt(ref: StackRef, plaintexts: EncodedValues): Promise<Buffer[]> {
    const { cipher, config, stacks } = this.#context;
    const stack = await stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const { maxSecretBytes } = config.limits;
    const ciphertexts: Buffer[] = [];
    await inGroups(plaintexts, everyIndex(plaintexts), async (group, indexes) => {
      for (const [at, { length }] of group.entries()) {
        if (length <= maxSecretBytes) continue;
        throw new PayloadTooLargeError(
          `${plaintexts.nameOf(indexes[at] as number)} has ${length} bytes; at most ${maxSecretBytes} are encrypted`,
        );
      }
      ciphertexts.push(...(await cipher.encrypt(stack.id, group)));
    });
    return ciphertexts;
  }

  /**
   * Also decrypts values of a stack that had this path before a rename: old checkpoints still refer to the old path. Returns plaintexts by
   * the index of their ciphertext; of equal ciphertexts, only the first is included. The read is recorded before it returns. Throws
   * InvalidRequestError for ciphertexts of other stacks, ForbiddenError if the caller may decrypt none, and UnavailableError.
   */
  async decrypt(
    ref: StackRef,
    caller: Caller,
    ciphertexts: EncodedValues,
    audit: AuditTrail,
  ): Promise<Map<number, Buffer>> {
    const { cipher, db } = this.#context;
    const stackIds = await this.#listDecryptable(ref, caller, await this.#listStackIds(ref));
    const plaintexts = new Map<number, Buffer>();
    await inGroups(ciphertexts, distinctIndexes(ciphertexts), async (group, indexes) => {
      const decrypted = await cipher.decrypt(stackIds, group);
      for (const [at, plaintext] of decrypted.entries()) plaintexts.set(indexes[at] as number, plaintext);
    });
    const object = formatStackRef(ref);
    const read = { stackIds, organization: ref.organization, object, values: ciphertexts.count, names: [] };
    await audit.recordSecretRead(db, read);
    return plaintexts;
  }

  /**
   * Decrypts the secrets of one value for display; `path` names its location. The audit log always has a separate event, recorded before
   * this returns. Throws the errors of `decrypt`.
   */
  async reveal(
    ref: StackRef,
    caller: Caller,
    { ciphertexts, path }: { readonly ciphertexts: readonly Buffer[]; readonly path: string },
    audit: AuditTrail,
  ): Promise<Buffer[]> {
    const { cipher, db } = this.#context;
    const stackIds = await this.#listDecryptable(ref, caller, await this.#listStackIds(ref));
    const plaintexts = await cipher.decrypt(stackIds, ciphertexts);
    const details = { path: clean(path), values: ciphertexts.length };
    await audit.recordRead(db, { organization: ref.organization, object: formatStackRef(ref), details });
    return plaintexts;
  }

  /** The current names and tags decide. */
  async #listDecryptable(ref: StackRef, access: LockedAccess, ids: readonly string[]): Promise<readonly string[]> {
    if (access.facts === null) return ids;
    const stacks = await this.#context.stacks.listByIds(ids);
    const held = stacks.map((stack) => permissionsOn(access, { ...stack, tags: readTags(stack.tags) }));
    const decryptable = stacks.filter((_, at) => permits(held[at] as number, 'decrypt')).map(({ id }) => id);
    if (decryptable.length > 0) return decryptable;
    const readable = held.find((set) => hasPermission(set, 'read'));
    if (readable === undefined) throw stackNotFound(ref);
    throw missingPermission('decrypt', readable, ref);
  }

  /** The CLI showed one secret, or a command showed several. Throws UnavailableError. */
  async recordShown(
    ref: StackRef,
    { name, command }: { readonly name: string | null; readonly command: string | null },
    audit: AuditTrail,
  ): Promise<void> {
    const stackIds = await this.#listStackIds(ref);
    const shown = { name: name && clean(name), command: command && clean(command) };
    const names = [shown.name ?? ''].filter((each) => each !== '');
    const object = formatStackRef(ref);
    const read = { stackIds, organization: ref.organization, object, values: 0, names, details: shown };
    await audit.recordSecretRead(this.#context.db, read);
  }

  /** Includes stacks that had the path before a rename. */
  async #listStackIds(ref: StackRef): Promise<readonly string[]> {
    const { encryptionKeys, identity } = this.#context;
    const organization = await identity.findOrganization(ref.organization);
    const stackIds = organization
      ? await encryptionKeys.listStackIdsByName(organization.id, ref.project, ref.stack)
      : [];
    if (stackIds.length === 0) throw stackNotFound(ref);
    return stackIds;
  }
}

function clean(text: string): string {
  return text.slice(0, maxNameChars).toWellFormed().replaceAll('\0', '');
}

/** Groups of about 1 MiB, one per time slice. */
async function inGroups(
  values: EncodedValues,
  indexes: Iterable<number> | AsyncIterable<number>,
  work: (group: Buffer[], indexes: readonly number[]) => Promise<void>,
): Promise<void> {
  let group: Buffer[] = [];
  let groupIndexes: number[] = [];
  let bytes = 0;
  for await (const index of indexes) {
    const value = await values.decode(index);
    group.push(value);
    groupIndexes.push(index);
    bytes += value.length + overheadBytes;
    if (bytes < timeSliceBytes) continue;
    await work(group, groupIndexes);
    await nextSlice();
    group = [];
    groupIndexes = [];
    bytes = 0;
  }
  if (group.length > 0) await work(group, groupIndexes);
}

function* everyIndex(values: EncodedValues): Generator<number> {
  for (let index = 0; index < values.count; index++) yield index;
}

/** Skips values with the same text as an earlier one. */
async function* distinctIndexes(values: EncodedValues): AsyncGenerator<number> {
  const seen = new Set<string>();
  const slices = new Slices();
  for (const index of everyIndex(values)) {
    const hash = createHash('sha256');
    let bytes = overheadBytes;
    for (const chunk of values.chunks(index)) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    await slices.spend(bytes);
    const digest = hash.digest('base64');
    if (seen.has(digest)) continue;
    seen.add(digest);
    yield index;
  }
}
