import { urnKey } from '../state/deployments/live-urns.ts';
import { metadataOf, parsedEvent } from './step-times.ts';

/** What an update says of one resource that was tried more than once. */
interface RetriedResource {
  readonly urn: string;
  /** How often a step of it was begun that had been begun before. */
  readonly repeats: number;
  /** Messages about it that speak of another attempt. */
  readonly messages: number;
}

/** Signs of retries, as far as an update says so. */
export interface Retries {
  readonly repeats: number;
  readonly messages: number;
  /** Those with the most. */
  readonly resources: readonly RetriedResource[];
}

/** More steps, and more resources that are retried, are not looked at. */
const maxBegun = 20_000;
const maxResources = 1_000;
const maxShown = 10;
/** Longer messages are logs, in characters of JSON. */
const maxMessageChars = 16_384;
const maxUrnChars = 4_000;

/** What providers write: `Retry #2; creation failed`, `retrying in 5s`, `attempt 3 of 10`. */
const speaksOfRetry = /\bretry(?:ing)?\b|\bretried\b|\battempt #?\d/i;
/** Advice about what a person can do is no sign. */
const isAdvice = /\b(?:please|then|to|you can|should|must|cannot|not) (?:be )?(?:retry|retried)\b/i;

/**
 * Collects signs of retries from the events of an update, in their order: steps that begin again, and messages of providers that say so.
 * What a provider or an SDK repeats without a word cannot be seen.
 */
export class RetrySigns {
  readonly #begun = new Set<string>();
  readonly #resources = new Map<string, { urn: string; repeats: number; messages: number }>();

  get found(): Retries {
    const resources = [...this.#resources.values()].sort(
      (a, b) => b.repeats + b.messages - (a.repeats + a.messages) || (a.urn < b.urn ? -1 : 1),
    );
    return {
      repeats: resources.reduce((sum, { repeats }) => sum + repeats, 0),
      messages: resources.reduce((sum, { messages }) => sum + messages, 0),
      resources: resources.slice(0, maxShown).map((each) => ({ ...each })),
    };
  }

  /** Adds an event as its client has sent it. */
  add(type: string, text: string): void {
    if (type === 'diagnosticEvent') this.#addMessage(text);
    else if (type === 'resourcePreEvent') this.#addBeginning(text);
  }

  #addBeginning(text: string): void {
    const step = metadataOf(parsedEvent(text)['resourcePreEvent']);
    if (!step) return;
    // Several copies of a resource may be deleted one after the other: their ids tell them apart.
    const key = `${step.key} ${step.oldId}`;
    if (this.#begun.has(key)) this.#note(step.urn, 'repeats');
    else if (this.#begun.size < maxBegun) this.#begun.add(key);
  }

  #addMessage(text: string): void {
    if (text.length > maxMessageChars || !speaksOfRetry.test(text)) return;
    const { message, urn } = (parsedEvent(text)['diagnosticEvent'] ?? {}) as { message?: unknown; urn?: unknown };
    if (typeof message !== 'string' || typeof urn !== 'string' || urn === '' || urn.length > maxUrnChars) return;
    if (speaksOfRetry.test(message) && !isAdvice.test(message)) this.#note(urn, 'messages');
  }

  #note(urn: string, sign: 'repeats' | 'messages'): void {
    const key = urnKey(urn);
    const found = this.#resources.get(key);
    if (found) found[sign]++;
    else if (this.#resources.size < maxResources) this.#resources.set(key, { urn, repeats: 0, messages: 0, [sign]: 1 });
  }
}
