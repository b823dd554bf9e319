import { copyOf, cutText } from '../../shared/platform/text/cut-text.ts';
import { redactedJsonInSlices } from './resources/redacted-json.ts';

/** Larger values are not shown. */
const maxValueBytes = 16 * 1024;
/** Paths and values of one answer, which are serialized at once. */
const maxViewBytes = 1024 * 1024;
/** Values up to this size are always shown. */
const minValueBytes = 64;
/** Size of the name, braces and quotes of one property. */
const propertyBytes = 50;

/** As many redacted values as fit into a response. */
export class ValueViews {
  #left = maxViewBytes;

  /** The response ends after the current resource. */
  get isFull(): boolean {
    return this.#left <= 0;
  }

  async property(path: string, before: Buffer | null | undefined, after: Buffer | null | undefined) {
    this.#left -= path.length + propertyBytes;
    return { path, before: await this.#value(before ?? null), after: await this.#value(after ?? null) };
  }

  async #value(text: Buffer | null): Promise<unknown> {
    const most = Math.max(minValueBytes, Math.min(this.#left, maxValueBytes));
    this.#left -= Math.min(text?.length ?? 0, most);
    return redactedJsonInSlices(text, most);
  }
}

const maxNameChars = 2_000;

export function nameViews(urn: string, type: string) {
  return {
    urn: cutText(urn, maxNameChars),
    type: cutText(type, maxNameChars),
    name: cutText(copyOf(urn.slice(urn.lastIndexOf('::') + 2)), maxNameChars),
  };
}
