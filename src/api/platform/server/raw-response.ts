import { STATUS_CODES } from 'node:http';
import { securityHeaders } from '../../../shared/platform/http/security-headers.ts';
import type { ErrorResponse } from '../protocol/errors.ts';

const secured = Object.entries(securityHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');

/** A response to input that never becomes a request. The connection closes after it. */
export function rawResponse({ code, message }: ErrorResponse): string {
  const body = JSON.stringify({ code, message });
  const retry = code === 503 ? 'Retry-After: 1\r\n' : '';
  return (
    `HTTP/1.1 ${code} ${STATUS_CODES[code]}\r\nContent-Type: application/json; charset=utf-8\r\n${secured}${retry}` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}
