import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { scanMembersInSlices, sliceOf } from '../../shared/platform/json/json-text.ts';
import { joinParts, nameText, replaceRanges } from '../../shared/platform/json/member-edits.ts';
import { Slices } from '../../shared/platform/slices/slices.ts';
import { listSecretsInSlices } from './resources/redacted-json.ts';
import { readRootOutputs } from './resources/root-outputs.ts';
import { plainSecret } from './resources/secret-values.ts';

/** Decrypts a secret that the service has encrypted for the stack. Throws InvalidRequestError for other ciphertexts. */
export type DecryptSecret = (ciphertext: Buffer) => Promise<Buffer>;

export interface OutputsExport {
  readonly document: Buffer;
  readonly resourceCount: number;
  /** Secret outputs in the document. */
  readonly secret: readonly string[];
  /** Secret outputs that are not in the document. */
  readonly leftOut: readonly string[];
}

/** Waits until outputs of this size may be in memory. */
export type AdmitOutputs = (bytes: number) => Promise<void>;

/** The fixed cost of an output. */
const memberBytes = 2_048;
const maxTypeBytes = 256;

/** Without time and CLI version, which are not outputs. */
const manifest = Buffer.from('"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","version":""}');

/**
 * The document for callers who may read only the outputs of a stack: only its root resource with its outputs. Secret outputs are included
 * only with `decrypt`, in plaintext if the service has encrypted them. Without `decrypt`, or given only the ciphertext, the CLI's
 * StackReference would silently read `{}` in place of each secret. Calls `admit` between the state and the secrets, and throws its errors.
 */
export async function exportOutputs(
  state: AsyncIterable<Buffer>,
  { admit, decrypt }: { readonly admit: AdmitOutputs; readonly decrypt: DecryptSecret | null },
): Promise<OutputsExport> {
  const { features, outputs, secretsProviders, urn, version } = await readRootOutputs(state);
  await admit([features, outputs, secretsProviders].reduce((sum, part) => sum + (part?.length ?? 0), 0));
  const isService = (await typeOf(secretsProviders)) === 'service';
  const members: Buffer[] = [];
  const secret: string[] = [];
  const leftOut: string[] = [];
  const slices = new Slices();
  for (const [name, span] of (outputs && (await scanMembersInSlices(outputs))) ?? []) {
    const value = sliceOf(outputs as Buffer, span);
    await slices.spend(value.length + memberBytes);
    const shown = await showSecrets(value, decrypt, isService);
    if (shown === null) leftOut.push(name);
    else members.push(Buffer.concat([nameText(name), shown.value]));
    if (shown?.isSecret) secret.push(name);
  }
  const root = urn && [
    Buffer.concat([nameText('urn'), urn]),
    Buffer.from('"custom":false,"type":"pulumi:pulumi:Stack"'),
    Buffer.concat([nameText('outputs'), joinParts('{', members, '}')]),
  ];
  // Clients decrypt other secrets themselves, with the secrets provider.
  const needsProvider = decrypt !== null && secretsProviders !== null && !isService;
  const deployment = [
    manifest,
    ...(needsProvider ? [Buffer.concat([nameText('secrets_providers'), secretsProviders])] : []),
    Buffer.concat([nameText('resources'), joinParts('[', root ? [joinParts('{', root, '}')] : [], ']')]),
  ];
  const document = [
    Buffer.concat([nameText('version'), version ?? Buffer.from('3')]),
    ...(features ? [Buffer.concat([nameText('features'), features])] : []),
    Buffer.concat([nameText('deployment'), joinParts('{', deployment, '}')]),
  ];
  return { document: joinParts('{', document, '}'), resourceCount: root ? 1 : 0, secret, leftOut };
}

/** Null if the value has secrets that may not, or cannot, be decrypted. */
async function showSecrets(
  value: Buffer,
  decrypt: DecryptSecret | null,
  isService: boolean,
): Promise<{ readonly value: Buffer; readonly isSecret: boolean } | null> {
  const spans = await listSecretsInSlices(value);
  if (spans.length === 0) return { value, isSecret: false };
  if (decrypt === null) return null;
  if (!isService) return { value, isSecret: true };
  const replacements = [];
  for (const { ciphertext, end, start } of spans) {
    if (ciphertext === null) continue;
    const plaintext = await decrypt(Buffer.from(ciphertext, 'base64')).catch((error: unknown) => {
      if (error instanceof InvalidRequestError) return null;
      throw error;
    });
    if (plaintext === null) return null;
    replacements.push({ start, end, by: plainSecret(plaintext.toString('utf8')) });
  }
  return { value: replaceRanges(value, replacements), isSecret: true };
}

/** Empty if the type is absent, or longer than any known type. */
async function typeOf(secretsProviders: Buffer | null): Promise<string> {
  const span = secretsProviders && (await scanMembersInSlices(secretsProviders))?.get('type');
  if (span?.kind !== 'string' || span.end - span.start > maxTypeBytes) return '';
  return JSON.parse(sliceOf(secretsProviders as Buffer, span).toString('utf8')) as string;
}
