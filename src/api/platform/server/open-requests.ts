import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface OpenRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The requests of each connection whose responses are not complete, oldest first. A client may send several at once. */
export class OpenRequests {
  readonly #open = new WeakMap<Socket, OpenRequest[]>();
  readonly #last = new WeakMap<Socket, IncomingMessage>();

  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const open = this.#open.get(socket) ?? [];
    const entry = { request, response };
    this.#open.set(socket, [...open, entry]);
    this.#last.set(socket, request);
    const remove = (): void => {
      this.#open.set(
        socket,
        this.of(socket).filter((each) => each !== entry),
      );
    };
    response.once('finish', remove).once('close', remove);
  }

  of(socket: Socket): readonly OpenRequest[] {
    return this.#open.get(socket) ?? [];
  }

  /** Answered or not. */
  lastOf(socket: Socket): IncomingMessage | undefined {
    return this.#last.get(socket);
  }
}
