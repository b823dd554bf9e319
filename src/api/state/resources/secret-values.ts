import { type JsonKind, JsonScanner, type Span } from '../../../shared/platform/json/json-scanner.ts';

/** The CLI recognizes special values by this member, and secrets by this value (sdk/go/common/resource/properties.go). */
const signatureKey = '4dabf18193072939515e22adb298388d';
const secretSignature = '1b47061264138c4ac30d75fd1eb44270';

const maxSignatureBytes = 256;

/** An object with its ciphertext, or with its plaintext if it was imported as plaintext. */
export interface SecretSpan extends Span {
  /** Null if there is no ciphertext. */
  readonly ciphertext: string | null;
}

/** The members of an object so far. */
interface OpenObject {
  isSecret: boolean;
  ciphertext: string | null;
}

/** Finds secrets in the JSON of a property value, in order; they are never nested. May throw JsonSyntaxError. */
export function listSecrets(text: Buffer): SecretSpan[] {
  if (hasNoSecrets(text)) return [];
  const { scanner, secrets } = secretScanner(text);
  scanner.write(text);
  scanner.end();
  return secrets;
}

/** Decides most values without a scan. False for values with escapes, which may hide the name of a member. */
export function hasNoSecrets(text: Buffer): boolean {
  return !text.includes(signatureKey) && !text.includes('\\u');
}

/** The scanner must be fed `text`; it fills the list. */
export function secretScanner(text: Buffer): { readonly scanner: JsonScanner; readonly secrets: SecretSpan[] } {
  const secrets: SecretSpan[] = [];
  /** Open objects by their depth. */
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

/** A secret as the CLI writes it; the plaintext is JSON itself. */
export function plainSecret(plaintext: string): Buffer {
  return Buffer.from(JSON.stringify({ [signatureKey]: secretSignature, plaintext }));
}

function stringOf(text: Buffer, start: number, end: number): string {
  return JSON.parse(text.toString('utf8', start, end)) as string;
}
