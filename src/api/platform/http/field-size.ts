import { PayloadTooLargeError } from '../../../shared/platform/errors/errors.ts';

export function assertFieldSize(field: string, text: string, maxBytes: number): void {
  // A UTF-16 unit takes at most three bytes.
  if (text.length * 3 <= maxBytes) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) throw new PayloadTooLargeError(`${field} has ${bytes} bytes; at most ${maxBytes} are accepted`);
}
