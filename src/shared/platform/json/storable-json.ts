/**
 * Postgres can store the text as `jsonb` and convert it from `json`. Replaces NULs and lone surrogates, which JSON.stringify only escapes.
 */
export function storableJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(/\\(?:u(?:0000|d[89a-f][0-9a-f]{2})|.)/g, (written) =>
    written.length > 2 ? '\\ufffd' : written,
  );
}

export function isStorableJson(value: unknown): boolean {
  return JSON.stringify(value) === storableJson(value);
}
