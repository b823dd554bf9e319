import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorResponse } from '../../shared/protocol/errors.ts';

const answers: Readonly<Record<string, ErrorResponse>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { code: 408, message: 'The request did not come to its end in time' },
  HPE_HEADER_OVERFLOW: { code: 431, message: 'The address and the headers of the request are too large together' },
};
const malformed: ErrorResponse = { code: 400, message: 'This is not an HTTP request, or a broken one' };

/** Answers what never became a request, in the shape of all other errors; the connection ends with it. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const answer = answers[error.code ?? ''] ?? malformed;
  const body = JSON.stringify(answer);
  if (socket.writable) {
    socket.write(
      `HTTP/1.1 ${answer.code} ${STATUS_CODES[answer.code]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroy(error);
}
