import { JsonScanner, JsonSyntaxError, type Span } from '../../../shared/platform/json/json-scanner.ts';
import { scanJson } from '../../../shared/platform/json/json-text.ts';
import { replaceRanges } from '../../../shared/platform/json/member-edits.ts';

/** Values nested deeper are not shown: serializers recurse, and run out of stack at some thousands. */
const maxViewDepth = 100;

/**
 * The JSON for display: objects and arrays nested `maxViewDepth` times or deeper become `{"[deep]": bytes}`. All other bytes are kept.
 * Throws JsonSyntaxError.
 */
export function cutDeep(text: Buffer): Buffer {
  if (!isDeep(text)) return text;
  const deep: (Span & { readonly by: Buffer })[] = [];
  scanJson(text, maxViewDepth, (path, { end, kind, start }) => {
    if (path.length === maxViewDepth && (kind === 'object' || kind === 'array'))
      deep.push({ start, end, by: Buffer.from(`{"[deep]":${end - start}}`) });
  });
  return replaceRanges(text, deep);
}

/** Also true for invalid JSON. A scan without callbacks is several times as fast. */
function isDeep(text: Buffer): boolean {
  // Each level has two brackets.
  if (text.length < 2 * maxViewDepth) return false;
  try {
    new JsonScanner({ reportDepth: -1, maxDepth: maxViewDepth, onValue: () => {} }).write(text);
    return false;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return true;
    throw error;
  }
}
