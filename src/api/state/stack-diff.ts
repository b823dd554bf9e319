import { viewResource } from '../../shared/search/resource-facts.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { noSuchVersion } from './no-such-version.ts';
import { describeDifference, type StackDifference } from './resource-difference.ts';
import { canonicalOf } from './resources/canonical-resource.ts';
import { countShared, type SecretPair, secretBatches } from './secret-pairs.ts';
import { nameIn } from './value-reads.ts';
import { ValueViews } from './value-views.ts';

/** The kept texts of a page's resources, of both stacks; the page ends early. */
const maxPageBytes = 16 * 1024 * 1024;
/** Memory that is kept for each resource of a state. */
const keptBytes = 300;
/** Compared secrets, and characters of their ciphertexts, for each of the two stacks. */
const maxSecrets = 5_000;
const maxSecretChars = 8 * 1024 * 1024;
/** `version` null: the newest. */
export interface ComparedState {
  readonly ref: StackRef;
  readonly version: number | null;
}

export interface StackDiffQuery {
  readonly from: ComparedState;
  readonly to: ComparedState;
  readonly withOutputs: boolean;
  /** The audit records of reading both stacks' secrets; null: secrets are not compared. */
  readonly secrets: { readonly from: AuditTrail; readonly to: AuditTrail } | null;
  readonly offset: number;
  readonly limit: number;
}

interface Side {
  readonly stackId: string;
  readonly version: number;
  /** Resources by key, in the order of the state. */
  readonly resources: Map<string, { readonly digest: string; readonly bytes: number }>;
  readonly secrets: Map<string, readonly (string | null)[]>;
  secretChars: number;
  secretCount: number;
}

/** Both states are read as streams; only digests and the texts of one page are kept. */
export class StackDiff {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /**
   * Resources that differ, or that only one stack has, by type and name: in the order of `to`, then those that only `from` has. Ids and, by
   * default, outputs are specific to each stack and not compared. Throws UnavailableError, and the errors of `scan`.
   */
  async diff(scan: StateScan, { from, limit, offset, secrets, to, withOutputs }: StackDiffQuery) {
    await scan.hold((await this.#weigh(scan, from)) + (await this.#weigh(scan, to)), from.ref.organization);
    const before = await this.#read(scan, from, withOutputs);
    const after = await this.#read(scan, to, withOutputs);
    const compared = secrets === null ? null : await this.#compareSecrets(scan, before, after);
    if (secrets && compared && compared.count > 0) {
      await this.#record(secrets.from, from.ref, to.ref, compared.count);
      await this.#record(secrets.to, to.ref, from.ref, compared.count);
    }
    const { differing, same } = await compareDigests(scan, before, after, compared?.differing ?? new Map());
    const keys = pageOf(differing.slice(offset, offset + limit), [before, after]);
    const [old, next] = [await this.#texts(scan, before, keys), await this.#texts(scan, after, keys)];
    const items: StackDifference[] = [];
    const values = new ValueViews();
    let end = offset;
    for (const key of keys) {
      if (values.isFull) break;
      const [was, is] = [old.get(key) ?? null, next.get(key) ?? null];
      const item = await describeDifference(was, is, {
        withOutputs,
        values,
        secrets: compared?.differing.get(key) ?? new Set(),
      });
      if (item) items.push(item);
      end++;
      await scan.pause();
    }
    return {
      items,
      next: differing.length > end ? end : null,
      total: differing.length,
      same,
      fromVersion: before.version,
      toVersion: after.version,
      /** Secrets in common resources. */
      secretsNotCompared: countShared(before.secrets, after.secrets) - (compared?.count ?? 0),
    };
  }

  /** Approximate memory of the comparison, in bytes. */
  async #weigh(scan: StateScan, compared: ComparedState): Promise<number> {
    const { stackId, version } = await this.#find(compared);
    const state = version === 0 ? null : await scan.readVersion(stackId, version);
    if (!state) return 0;
    await state.bytes[Symbol.asyncIterator]().return?.();
    return keptBytes * state.resourceCount + Math.min(state.sizeBytes, maxPageBytes);
  }

  async #find({ ref, version }: ComparedState): Promise<Pick<Side, 'stackId' | 'version'>> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    return { stackId: stack.id, version: version ?? stack.stackVersion };
  }

  async #read(scan: StateScan, compared: ComparedState, withOutputs: boolean): Promise<Side> {
    const found = await this.#find(compared);
    const side: Side = {
      ...found,
      ...{ resources: new Map(), secrets: new Map(), secretChars: 0, secretCount: 0 },
    };
    await this.#scan(scan, side, async (text) => {
      const view = await viewResource(text);
      if (view.isDeleted) return;
      const { digest, secrets } = await canonicalOf(view, withOutputs);
      side.resources.set(view.key, { digest, bytes: text.length });
      if (secrets.length === 0) return;
      side.secretCount += secrets.length;
      side.secretChars += secrets.reduce((sum, each) => sum + (each?.length ?? 0), 0);
      const isKept = side.secretCount <= maxSecrets && side.secretChars <= maxSecretChars;
      side.secrets.set(view.key, isKept ? secrets : secrets.map(() => null));
    });
    return side;
  }

  async #scan(scan: StateScan, { stackId, version }: Side, onResource: (text: Buffer) => Promise<void>): Promise<void> {
    if (version === 0) return;
    const state = await scan.readVersion(stackId, version);
    if (!state) throw noSuchVersion(version);
    await scan.scanResources(state, onResource);
  }

  async #texts(scan: StateScan, side: Side, keys: readonly string[]): Promise<Map<string, Buffer>> {
    const wanted = new Set(keys.filter((key) => side.resources.has(key)));
    const found = new Map<string, Buffer>();
    if (wanted.size === 0) return found;
    await this.#scan(scan, side, async (text) => {
      const view = await viewResource(text);
      if (!view.isDeleted && wanted.has(view.key)) found.set(view.key, Buffer.from(text));
    });
    return found;
  }

  /** Finds the differing secrets of common resources by their position in the resource, and counts the compared ones. */
  async #compareSecrets(scan: StateScan, before: Side, after: Side) {
    const differing = new Map<string, Set<number>>();
    let count = 0;
    for (const pairs of secretBatches(before.secrets, after.secrets)) {
      await scan.pause();
      const was = await this.#decrypt(before, pairs, (pair) => pair.before);
      const is = await this.#decrypt(after, pairs, (pair) => pair.after);
      for (const [index, { at, key }] of pairs.entries()) {
        const [old, next] = [was[index] ?? null, is[index] ?? null];
        if (old === null || next === null) continue;
        count++;
        if (!old.equals(next)) differing.set(key, (differing.get(key) ?? new Set()).add(at));
      }
    }
    return { differing, count };
  }

  /** Null: not encrypted by this server. */
  #decrypt({ stackId }: Side, pairs: readonly SecretPair[], of: (pair: SecretPair) => string) {
    return this.#context.cipher.decryptEach(
      [stackId],
      pairs.map((pair) => Buffer.from(of(pair), 'base64')),
    );
  }

  async #record(audit: AuditTrail, ref: StackRef, other: StackRef, values: number): Promise<void> {
    await audit.recordRead(this.#context.db, {
      organization: ref.organization,
      object: formatStackRef(ref),
      details: { values, comparedWith: nameIn(ref.organization, other) },
    });
  }
}

/** Keys of differing resources, and the number of resources that both stacks have. */
async function compareDigests(
  scan: StateScan,
  before: Side,
  after: Side,
  secrets: ReadonlyMap<string, ReadonlySet<number>>,
): Promise<{ readonly differing: string[]; readonly same: number }> {
  const differing: string[] = [];
  let same = 0;
  for (const [key, { digest }] of after.resources) {
    const other = before.resources.get(key);
    if (other) same++;
    if (other?.digest !== digest || secrets.has(key)) differing.push(key);
    await scan.pause();
  }
  for (const key of before.resources.keys()) {
    if (!after.resources.has(key)) differing.push(key);
    await scan.pause();
  }
  return { differing, same };
}

/** As many resources as memory permits, at least one. */
function pageOf(keys: readonly string[], sides: readonly Side[]): readonly string[] {
  let bytes = 0;
  const end = keys.findIndex((key) => {
    if (bytes > maxPageBytes) return true;
    for (const { resources } of sides) bytes += resources.get(key)?.bytes ?? 0;
    return false;
  });
  return end < 0 ? keys : keys.slice(0, end);
}
