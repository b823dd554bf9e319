import { listSecrets } from '../deployments/secret-values.ts';
import { replaceRanges } from '../platform/json/member-edits.ts';

/** In place of a secret. */
const sealed = Buffer.from('{"[secret]":true}');

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
