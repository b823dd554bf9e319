import { PayloadTooLargeError } from './errors.ts';

/**
 * Throws PayloadTooLargeError, which names field, size, limit and setting, when `text` has more than `maxBytes`
 * (HOLDFAST_MAX_FIELD_BYTES).
 */
export function assertFieldSize(field: string, text: string, maxBytes: number): void {
  // No unit takes more than three bytes.
  if (text.length * 3 <= maxBytes) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes)
    throw new PayloadTooLargeError(
      `${field} has ${bytes} bytes; at most ${maxBytes} are accepted (HOLDFAST_MAX_FIELD_BYTES)`,
    );
}
