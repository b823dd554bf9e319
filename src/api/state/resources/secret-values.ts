import { type JsonKind, JsonScanner, type Span } from '../../../shared/platform/json/json-scanner.ts';

/** The member by which the CLI recognizes special values, and its value for secrets (sdk/go/common/resource/properties.go). */
const signatureKey = '4dabf18193072939515e22adb298388d';
const secretSignature = '1b47061264138c4ac30d75fd1eb44270';

const maxSignatureBytes = 256;

/** A secret in a property value: an object with its ciphertext, or with its plaintext if that was imported so. */
export interface SecretSpan extends Span {
  /** Null if there is none. */
  readonly ciphertext: string | null;
}

/** What is known of an object before it ends. */
interface OpenObject {
  isSecret: boolean;
  ciphertext: string | null;
}

/** Finds the secrets in the JSON `text` of a property value, in order; none lies in another. May throw JsonSyntaxError. */
export function listSecrets(text: Buffer): SecretSpan[] {
  if (hasNoSecrets(text)) return [];
  const { scanner, secrets } = secretScanner(text);
  scanner.write(text);
  scanner.end();
  return secrets;
}

/** Most values are decided without a scan. A name of a member may be written with escapes, though nobody does. */
export function hasNoSecrets(text: Buffer): boolean {
  return !text.includes(signatureKey) && !text.includes('\\u');
}

/** A scanner that is to be fed `text`, and the secrets that it has found, as `listSecrets` does. */
export function secretScanner(text: Buffer): { readonly scanner: JsonScanner; readonly secrets: SecretSpan[] } {
  const secrets: SecretSpan[] = [];
  /** By the depth of the object. */
  const open: (OpenObject | undefined)[] = [];
  const ofParent = (depth: number): OpenObject => {
    const known = open[depth - 1] ?? { isSecret: false, ciphertext: null };
    open[depth - 1] = known;
    return known;
  };
  const onValue = (path: readonly (string | number)[], kind: JsonKind, start: number, end: number): void => {
    const depth = path.length;
    const name = path[depth - 1];
    if (kind === 'string' && name === signatureKey && end - start <= maxSignatureBytes) {
      if (stringOf(text, start, end) === secretSignature) ofParent(depth).isSecret = true;
    } else if (kind === 'string' && name === 'ciphertext') ofParent(depth).ciphertext = stringOf(text, start, end);
    const known = open[depth];
    open[depth] = undefined;
    if (!known?.isSecret) return;
    while ((secrets.at(-1)?.start ?? -1) >= start) secrets.pop();
    secrets.push({ start, end, ciphertext: known.ciphertext });
  };
  return { scanner: new JsonScanner({ reportDepth: Number.MAX_SAFE_INTEGER, onValue }), secrets };
}

/** A secret value as the CLI writes it with its plaintext, which is JSON itself. */
export function plainSecret(plaintext: string): Buffer {
  return Buffer.from(JSON.stringify({ [signatureKey]: secretSignature, plaintext }));
}

function stringOf(text: Buffer, start: number, end: number): string {
  return JSON.parse(text.toString('utf8', start, end)) as string;
}
