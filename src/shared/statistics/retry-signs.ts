import { urnKey } from '../state/deployments/live-urns.ts';
import { metadataOf, parsedEvent } from './step-times.ts';

interface RetriedResource {
  readonly urn: string;
  /** Repeated beginnings of a step. */
  readonly repeats: number;
  /** Messages that mention another attempt. */
  readonly messages: number;
}

export interface Retries {
  readonly repeats: number;
  readonly messages: number;
  /** Those with the most retries. */
  readonly resources: readonly RetriedResource[];
}

/** Further steps and retried resources are ignored. */
const maxBegun = 20_000;
const maxResources = 1_000;
const maxListed = 10;
/** In JSON. Longer messages are logs. */
const maxMessageChars = 16_384;
const maxUrnChars = 4_000;

/** Providers write e.g. `Retry #2; creation failed`, `retrying in 5s`, `attempt 3 of 10`. */
const speaksOfRetry = /\bretry(?:ing)?\b|\bretried\b|\battempt #?\d/i;
/** Advice to the user is not a sign of a retry. */
const isAdvice = /\b(?:please|then|to|you can|should|must|cannot|not) (?:be )?(?:retry|retried)\b/i;

/**
 * The signs are steps that begin again, and messages of providers that mention retries. Silent retries of a provider or an SDK cannot be
 * detected.
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
      resources: resources.slice(0, maxListed).map((each) => ({ ...each })),
    };
  }

  /** As sent by the client. */
  add(type: string, text: string): void {
    if (type === 'diagnosticEvent') this.#addMessage(text);
    else if (type === 'resourcePreEvent') this.#addBeginning(text);
  }

  #addBeginning(text: string): void {
    const step = metadataOf(parsedEvent(text)['resourcePreEvent']);
    if (!step) return;
    // Several copies of a resource may be deleted one after another. Their ids distinguish them.
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
