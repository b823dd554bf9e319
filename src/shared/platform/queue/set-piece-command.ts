import type { Writable } from 'node:stream';
import { Command } from 'ioredis';

/**
 * SET of a piece of a body, with an expiry. ioredis joins a command's parts to one buffer, a copy that lives until the next
 * garbage collection; this one writes the piece itself. It must stay as it is until the answer is there.
 */
export class SetPieceCommand extends Command {
  readonly #head: string;
  readonly #piece: Buffer;
  readonly #tail: string;

  constructor(key: string, piece: Buffer, lifeSeconds: number) {
    super('set', [key, '', 'EX', lifeSeconds], { replyEncoding: 'utf8' });
    const life = String(lifeSeconds);
    this.#head = `*5\r\n$3\r\nset\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n$${piece.length}\r\n`;
    this.#piece = piece;
    this.#tail = `\r\n$2\r\nEX\r\n$${life.length}\r\n${life}\r\n`;
  }

  /** Called each time that the command is sent; what it returns is written last. */
  override toWritable(socket: object): string {
    const stream = socket as Writable;
    stream.write(this.#head);
    stream.write(this.#piece);
    return this.#tail;
  }
}
