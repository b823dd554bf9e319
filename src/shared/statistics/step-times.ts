import { cutText } from '../platform/text/cut-text.ts';
import { urnKey } from '../state/deployments/live-urns.ts';

/** Seconds since the epoch: the client sends whole seconds. */
export interface Step {
  readonly urn: string;
  readonly type: string;
  /** For example `create` or `delete-replaced`. */
  readonly operation: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly isFailed: boolean;
}

export const stepEventTypes = ['resourcePreEvent', 'resOutputsEvent', 'resOpFailedEvent'] as const;

/** Further steps are counted, but their times are not compared. */
const maxSteps = 20_000;
/** No program produces longer URNs. */
const maxUrnChars = 4_000;

/** These do nothing to a resource. */
const idle: ReadonlySet<string> = new Set(['same', 'read', 'refresh', 'replace', 'discard', 'remove-pending-replace']);
/** Only events that match are parsed: most are about unchanged resources. */
const mayBeStep = /"op"\s*:\s*"(?!(?:same|read|refresh|replace|discard)")/;

/** From the events of an update, in order. Keeps at most `maxSteps`. */
export class StepTimes {
  readonly #open = new Map<
    string,
    { readonly startedAt: number; readonly type: string; readonly urn: string; readonly operation: string }
  >();
  readonly #steps: Step[] = [];
  #count = 0;

  /** In the order of their ends. */
  get steps(): readonly Step[] {
    return this.#steps;
  }

  get isCut(): boolean {
    return this.#count > this.#steps.length + this.#open.size;
  }

  /** As sent by the client. Ignores events that are not about a step. */
  add(text: string): void {
    if (!mayBeStep.test(text)) return;
    const event = parsedEvent(text);
    const { timestamp: at } = event;
    const begun = metadataOf(event['resourcePreEvent']);
    if (begun) {
      this.#count++;
      if (this.#open.size + this.#steps.length < maxSteps)
        this.#open.set(begun.key, { ...begun, startedAt: timeOf(at) });
      return;
    }
    const failed = metadataOf(event['resOpFailedEvent']);
    const ended = failed ?? metadataOf(event['resOutputsEvent']);
    const step = ended && this.#open.get(ended.key);
    if (!step) return;
    this.#open.delete(ended.key);
    const { operation, startedAt, type, urn } = step;
    this.#steps.push({
      urn,
      type,
      operation,
      startedAt,
      endedAt: Math.max(startedAt, timeOf(at)),
      isFailed: failed !== null,
    });
  }
}

/** Empty if the text is not an object. */
export function parsedEvent(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function timeOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

/** Null unless the event is about a step that changes a resource. */
export function metadataOf(payload: unknown) {
  const metadata = (payload as { readonly metadata?: Readonly<Record<string, unknown>> | null } | null | undefined)
    ?.metadata;
  const { old, op, type, urn } = metadata ?? {};
  if (typeof op !== 'string' || typeof urn !== 'string' || urn.length > maxUrnChars || op.length > 40 || idle.has(op))
    return null;
  const oldId = (old as { readonly id?: unknown } | null | undefined)?.id;
  return {
    urn,
    operation: op,
    type: typeof type === 'string' ? cutText(type, 300) : '',
    key: `${op} ${urnKey(urn)}`,
    oldId: typeof oldId === 'string' ? urnKey(oldId) : '',
  };
}
