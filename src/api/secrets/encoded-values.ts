import { joined } from '../../shared/platform/bytes/buffers.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { type JsonKind, JsonScanner, type Span } from '../../shared/platform/json/json-scanner.ts';
import { denseSliceBytes, nextSlice, scanInSlices, timeSliceBytes } from '../../shared/platform/slices/slices.ts';

/** The current CLI sends at most 1000 values; older ones send all values of a state (pkg/resource/stack/secrets.go). */
const maxItems = 100_000;
/** Members that are not read count, too. */
const maxDepth = 500;
const backslash = 0x5c;

// A repeated group would overflow the regex engine's stack on a long text.
const base64Pattern = /^[A-Za-z0-9+/]*={0,2}$/;
const base64WithoutPadding = /^[A-Za-z0-9+/]*$/;

/** Only the positions of the values are stored, so that a body with many takes little extra memory. */
export class EncodedValues {
  readonly #body: Buffer;
  readonly #spans: readonly Span[];
  readonly #nameOf: (index: number) => string;

  constructor(body: Buffer, spans: readonly Span[], nameOf: (index: number) => string) {
    this.#body = body;
    this.#spans = spans;
    this.#nameOf = nameOf;
  }

  get count(): number {
    return this.#spans.length;
  }

  /** The name is for error messages. */
  nameOf(index: number): string {
    return this.#nameOf(index);
  }

  /** Each chunk has at most 1 MiB. */
  *chunks(index: number): Generator<string> {
    const raw = this.#raw(index);
    if (raw.includes(backslash)) {
      yield JSON.parse(`"${raw.toString('utf8')}"`) as string;
      return;
    }
    for (let at = 0; at < raw.length || at === 0; at += timeSliceBytes)
      yield raw.toString('latin1', at, at + timeSliceBytes);
  }

  /** Throws InvalidRequestError. */
  async decode(index: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let last = '';
    for (const chunk of this.chunks(index)) {
      if (parts.length > 0) await nextSlice();
      if (last !== '' && !base64WithoutPadding.test(last)) throw this.#invalid(index);
      if (chunk.length % 4 !== 0 || !base64Pattern.test(chunk)) throw this.#invalid(index);
      parts.push(Buffer.from(chunk, 'base64'));
      last = chunk;
    }
    return joined(parts);
  }

  #raw(index: number): Buffer {
    const { start, end } = this.#spans[index] as Span;
    return this.#body.subarray(start + 1, end - 1);
  }

  #invalid(index: number): InvalidRequestError {
    return new InvalidRequestError(`${this.nameOf(index)} is not padded standard base64`);
  }
}

/** The member is a string. Throws InvalidRequestError, JsonSyntaxError. */
export async function readValue(body: Buffer, member: string): Promise<EncodedValues> {
  let found: (Span & { kind: JsonKind }) | null = null;
  await scanBody(body, 1, (path, kind, start, end) => {
    if (path[0] === member) found = { kind, start, end };
  });
  const value = found as (Span & { kind: JsonKind }) | null;
  if (value?.kind !== 'string') throw new InvalidRequestError(`body/${member} must be a string`);
  return new EncodedValues(body, [value], () => member);
}

/** The member is an array of strings. Throws InvalidRequestError, JsonSyntaxError. */
export async function readValues(body: Buffer, member: string): Promise<EncodedValues> {
  let spans: Span[] | null = null;
  let found: Span[] = [];
  await scanBody(body, 2, (path, kind, start, end) => {
    if (path[0] !== member) return;
    if (path.length === 1) {
      // If a member is repeated, the last one counts.
      spans = kind === 'array' ? found : null;
      found = [];
    } else {
      if (kind !== 'string') throw new InvalidRequestError(`body/${member}/${path[1]} must be a string`);
      if (found.length === maxItems) throw new InvalidRequestError(`${member} has more than ${maxItems} values`);
      found.push({ start, end });
    }
  });
  if (spans === null) throw new InvalidRequestError(`body/${member} must be an array`);
  return new EncodedValues(body, spans, (index) => `${member}[${index}]`);
}

async function scanBody(
  body: Buffer,
  reportDepth: number,
  onMember: ConstructorParameters<typeof JsonScanner>[0]['onValue'],
): Promise<void> {
  let isObject = false;
  const scanner = new JsonScanner({
    reportDepth,
    onValue: (path, kind, start, end) => {
      if (path.length > 0) onMember(path, kind, start, end);
      else isObject = kind === 'object';
    },
    maxDepth,
  });
  await scanInSlices(scanner, body, denseSliceBytes);
  scanner.end();
  if (!isObject) throw new InvalidRequestError('body must be object');
}

/** Each chunk has at most 1 MiB. */
export function* base64Chunks(bytes: Buffer): Generator<string> {
  const step = (timeSliceBytes / 4) * 3;
  for (let at = 0; at < bytes.length; at += step) yield bytes.toString('base64', at, at + step);
}
