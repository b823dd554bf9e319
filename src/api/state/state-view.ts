import { cutText } from '../../shared/platform/text/cut-text.ts';
import { viewResource } from '../../shared/search/resource-facts.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { StateDocument } from '../../shared/state/state-reader.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { noSuchVersion } from './no-such-version.ts';
import { redactedText } from './resources/redacted-json.ts';

/** A larger state is not shown as one text. */
const maxTextBytes = 5 * 1024 * 1024;
/** Copies in memory on their way to the client: as bytes, redacted, as JSON, in the response. */
const copies = 8;
const maxNameChars = 2_000;

/** The states are unchanged except for redacted secrets. */
export class StateView {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** Resources in the order of the state; `text`: part of the URN, in lower case. Throws the errors of `scan`. */
  async list(
    scan: StateScan,
    ref: StackRef,
    version: number,
    { limit, offset, text }: { readonly limit: number; readonly offset: number; readonly text: string | null },
  ) {
    const state = await this.#open(scan, ref, version);
    const items: { urn: string; type: string; name: string; bytes: number; isDeleted: boolean }[] = [];
    let passed = 0;
    let hasMore = false;
    const { bytes, skipped } = await scan.scanResources(state, async (json) => {
      const view = await viewResource(json);
      if (text !== null && !view.urn.toLowerCase().includes(text)) return;
      if (passed < offset) passed++;
      else if (items.length === limit) hasMore = true;
      else {
        const urn = cutText(view.urn, maxNameChars);
        const name = urn.slice(urn.lastIndexOf('::') + 2);
        items.push({
          urn,
          type: cutText(view.string('type'), maxNameChars),
          name,
          bytes: json.length,
          isDeleted: view.isDeleted,
        });
      }
    });
    return {
      items,
      next: hasMore ? offset + items.length : null,
      sizeBytes: bytes,
      resourceCount: state.resourceCount,
      /** Resources that are too large to be shown. */
      skipped,
      isText: bytes <= maxTextBytes,
    };
  }

  /** Null if it is too large. The read is recorded. Throws UnavailableError, and the errors of `scan`. */
  async text(scan: StateScan, ref: StackRef, version: number, audit: AuditTrail) {
    const state = await this.#open(scan, ref, version);
    if (state.sizeBytes > maxTextBytes) {
      await closeState(state);
      audit.settle();
      return { text: null, sizeBytes: state.sizeBytes };
    }
    try {
      await scan.hold(copies * state.sizeBytes, ref.organization);
    } catch (error) {
      await closeState(state);
      throw error;
    }
    const whole = Buffer.concat(await Array.fromAsync(state.bytes));
    await audit.recordRead(this.#context.db, {
      organization: ref.organization,
      object: formatStackRef(ref),
      details: { stackVersion: version, secrets: 'redacted' },
    });
    return { text: (await redactedText(whole)).toString('utf8'), sizeBytes: whole.length };
  }

  async #open(scan: StateScan, ref: StackRef, version: number): Promise<StateDocument> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const state = await scan.readVersion(stack.id, version);
    if (!state) throw noSuchVersion(version);
    return state;
  }
}

/** Does not read the state. */
async function closeState({ bytes }: StateDocument): Promise<void> {
  await bytes[Symbol.asyncIterator]().return?.();
}
