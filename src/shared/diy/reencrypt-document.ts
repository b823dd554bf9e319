import { JsonScanner } from '../platform/json/json-scanner.ts';
import { decodeJsonString } from '../platform/json/json-strings.ts';
import { type Replacement, replaceRanges } from '../platform/json/member-edits.ts';

/** A secret value is an object with this member (sdk/go/common/resource/sig). */
const signatureKey = '4dabf18193072939515e22adb298388d';
const secretSignature = '1b47061264138c4ac30d75fd1eb44270';

/** Null keeps a ciphertext that does not belong to the stack. */
export type Reencrypt = (ciphertexts: readonly string[]) => Promise<readonly (string | null)[]>;

/** Known once the document was read. */
export interface DocumentSecrets {
  /** The original secrets provider. */
  provider: { readonly type: string; readonly state: Readonly<Record<string, unknown>> } | null;
  reencrypted: number;
  kept: number;
}

/** Null keeps the secrets provider. */
type ReplaceProvider = (current: NonNullable<DocumentSecrets['provider']>) => Promise<object | null>;

/**
 * Replaces ciphertexts and the secrets provider; keeps all other bytes. Reads the document once; memory depends on its largest value.
 * Throws JsonSyntaxError.
 */
export async function* reencryptDocument(
  document: AsyncIterable<Buffer>,
  { provider, reencrypt }: { readonly provider: ReplaceProvider; readonly reencrypt: Reencrypt },
  found: DocumentSecrets,
): AsyncGenerator<Buffer> {
  const secrets = new SecretSpans();
  let text: Buffer = Buffer.alloc(0);
  let textStart = 0;
  for await (const chunk of document) {
    text = text.length === 0 ? chunk : Buffer.concat([text, chunk]);
    secrets.write(chunk);
    const { ciphertexts, end, provider: providerSpan } = secrets.take();
    const sliceOf = (span: { start: number; end: number }): Buffer =>
      text.subarray(span.start - textStart, span.end - textStart);
    const edits: Replacement[] = [];
    const values = ciphertexts.map((span) => decodeJsonString(sliceOf(span), 0, span.end - span.start));
    const replaced = values.length === 0 ? [] : await reencrypt(values);
    for (const [at, by] of replaced.entries()) {
      const { end: to, start } = ciphertexts[at] as { start: number; end: number };
      if (by === null) found.kept++;
      else edits.push({ start: start - textStart, end: to - textStart, by: Buffer.from(JSON.stringify(by)) });
    }
    found.reencrypted += edits.length;
    if (providerSpan !== null) {
      const { state = {}, type = '' } = JSON.parse(sliceOf(providerSpan).toString('utf8')) as {
        state?: Record<string, unknown>;
        type?: string;
      };
      found.provider = { type, state };
      const [start, to] = [providerSpan.start - textStart, providerSpan.end - textStart];
      const by = await provider(found.provider);
      if (by !== null) edits.push({ start, end: to, by: Buffer.from(JSON.stringify(by)) });
    }
    edits.sort((a, b) => a.start - b.start);
    const done = end - textStart;
    if (done > 0) yield replaceRanges(text.subarray(0, done), edits);
    // The next chunk may overwrite this one.
    text = Buffer.from(text.subarray(done));
    textStart = end;
  }
  secrets.end();
  if (text.length > 0) yield text;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Takes a document in chunks. */
class SecretSpans {
  /** Indexed by depth. The signature comes first, both in the CLI's output and with sorted members. */
  readonly #isSecret: boolean[] = [];
  #ciphertexts: Span[] = [];
  #provider: Span | null = null;
  /** Start of the provider while it is open. */
  #openProvider: number | null = null;
  #end = 0;
  #recent: { start: number; bytes: Buffer } = { start: 0, bytes: Buffer.alloc(0) };
  readonly #scanner = new JsonScanner({
    reportDepth: Number.POSITIVE_INFINITY,
    onOpen: (path, _kind, start) => {
      this.#isSecret[path.length] = false;
      if (isProvider(path)) this.#openProvider = start;
    },
    onValue: (path, kind, start, end) => this.#add(path, kind, { start, end }),
  });

  write(chunk: Buffer): void {
    const { bytes, start } = this.#recent;
    // The signature may be split between two chunks.
    const kept = bytes.subarray(Math.max(bytes.length - 64, 0));
    this.#recent = { start: start + bytes.length - kept.length, bytes: Buffer.concat([kept, chunk]) };
    this.#scanner.write(chunk);
  }

  /** Also returns the offset up to which the text is complete. */
  take(): { ciphertexts: readonly Span[]; provider: Span | null; end: number } {
    const found = { ciphertexts: this.#ciphertexts, provider: this.#provider, end: this.#openProvider ?? this.#end };
    this.#ciphertexts = [];
    this.#provider = null;
    return found;
  }

  end(): void {
    this.#scanner.end();
  }

  #add(path: readonly (string | number)[], kind: string, span: Span): void {
    this.#end = span.end;
    const name = path.at(-1);
    const depth = path.length - 1;
    if (kind === 'string' && name === signatureKey) {
      const { bytes, start } = this.#recent;
      const value = bytes.toString('latin1', span.start - start, span.end - start);
      this.#isSecret[depth] = value === `"${secretSignature}"`;
    } else if (kind === 'string' && name === 'ciphertext' && this.#isSecret[depth] === true) {
      this.#ciphertexts.push(span);
    } else if (isProvider(path)) {
      if (kind === 'object') this.#provider = span;
      this.#openProvider = null;
    }
  }
}

function isProvider(path: readonly (string | number)[]): boolean {
  return path.length === 2 && path[0] === 'deployment' && path[1] === 'secrets_providers';
}
