import { LRUCache } from 'lru-cache';
import { listSecrets } from '../../shared/deployments/secret-values.ts';
import { scanMembers, sliceOf } from '../../shared/platform/json/json-text.ts';
import { readRootOutputs } from '../../shared/states/root-outputs.ts';

/** An output of a stack. Nothing of a secret one is in it but its name. */
export interface ShownOutput {
  readonly name: string;
  /** Text as it is, other values as JSON; null: secret. */
  readonly value: string | null;
  readonly isSecret: boolean;
  /** Whether only the beginning of the value is here. */
  readonly isCut: boolean;
}

const maxOutputs = 500;
const maxValueChars = 20_000;
/** Size of all that is kept, in characters. */
const maxKept = 8 * 1024 * 1024;

/** Outputs of versions of stacks. A state is scanned once for all who look at the same version. */
export class ShownOutputs {
  readonly #recent = new LRUCache<string, Promise<readonly ShownOutput[]>>({ max: 1_000 });
  readonly #sizes = new LRUCache<string, number>({
    maxSize: maxKept,
    sizeCalculation: (size) => Math.max(size, 1),
    dispose: (_size, key) => this.#recent.delete(key),
  });

  /** The outputs of the state that `key` identifies, and that `open` opens; null: there is none. */
  read(key: string, open: () => Promise<AsyncIterable<Buffer> | null>): Promise<readonly ShownOutput[]> {
    const known = this.#recent.get(key);
    if (known) return known;
    const reading = (async () => {
      const state = await open();
      return state === null ? [] : sealedOutputs(state);
    })();
    this.#recent.set(key, reading);
    reading.then(
      (outputs) =>
        this.#sizes.set(
          key,
          outputs.reduce((sum, { name, value }) => sum + name.length + (value?.length ?? 0), 100),
        ),
      () => this.#recent.delete(key),
    );
    return reading;
  }
}

async function sealedOutputs(state: AsyncIterable<Buffer>): Promise<ShownOutput[]> {
  const { outputs } = await readRootOutputs(state);
  if (outputs === null) return [];
  return [...(scanMembers(outputs) ?? [])].slice(0, maxOutputs).map(([name, span]) => {
    const json = sliceOf(outputs, span);
    if (listSecrets(json).length > 0) return { name, value: null, isSecret: true, isCut: false };
    const text = textOf(json);
    return { name, value: text.slice(0, maxValueChars), isSecret: false, isCut: text.length > maxValueChars };
  });
}

function textOf(json: Buffer): string {
  const text = json.toString('utf8');
  return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}
