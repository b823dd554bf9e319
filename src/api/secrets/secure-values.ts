import type { Span } from '../../shared/platform/json/json-scanner.ts';
import { scanJson } from '../../shared/platform/json/json-text.ts';

export interface SecureValue extends Span {
  readonly ciphertext: string;
}

/** Objects `{"secure": ciphertext}`, in order; they are never nested. Null if the text is not JSON. */
export function secureValues(json: string): SecureValue[] | null {
  if (!/^\s*[[{]/.test(json)) return null;
  const text = Buffer.from(json);
  const found: SecureValue[] = [];
  /** Open objects by their depth. */
  const open: (string | undefined)[] = [];
  try {
    scanJson(text, Number.MAX_SAFE_INTEGER, (path, { end, kind, start }) => {
      const depth = path.length;
      const ciphertext = open[depth];
      open[depth] = undefined;
      if (kind === 'string' && path[depth - 1] === 'secure')
        open[depth - 1] = JSON.parse(text.toString('utf8', start, end)) as string;
      if (kind !== 'object' || ciphertext === undefined) return;
      while ((found.at(-1)?.start ?? -1) >= start) found.pop();
      found.push({ start, end, ciphertext });
    });
  } catch {
    return null;
  }
  return found;
}
