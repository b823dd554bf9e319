import { replaceRanges } from '../../platform/json/member-edits.ts';
import { scanInTurns } from '../../platform/turns/turns.ts';
import { listSecrets, secretScanner } from '../../state/deployments/secret-values.ts';

/** In place of a secret. */
const sealed = Buffer.from('{"[secret]":true}');

/** The same as the CLI writes a secret, for texts that are read as a state. */
const sealedSecret = Buffer.from(
  '{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","ciphertext":"[secret]"}',
);

/**
 * The JSON in `text`, of up to a few MiB, with `[secret]` in place of each ciphertext. All other bytes are kept. Throws JsonSyntaxError.
 */
export async function sealedText(text: Buffer): Promise<Buffer> {
  const { scanner, secrets } = secretScanner(text);
  await scanInTurns(scanner, text);
  scanner.end();
  return replaceRanges(
    text,
    secrets.map(({ end, start }) => ({ start, end, by: sealedSecret })),
  );
}

/**
 * The property value in `text` for people: secrets are replaced by `{"[secret]": true}`, and a value above `maxBytes` by
 * `{"[large]": bytes}`. Throws JsonSyntaxError.
 */
export function sealedJson(text: Buffer | null, maxBytes: number): unknown {
  if (text === null) return null;
  const secrets = listSecrets(text);
  const shown =
    secrets.length === 0
      ? text
      : replaceRanges(
          text,
          secrets.map(({ end, start }) => ({ start, end, by: sealed })),
        );
  return shown.length > maxBytes ? { '[large]': text.length } : (JSON.parse(shown.toString('utf8')) as unknown);
}
