import type { Writable } from 'node:stream';
import { Command } from 'ioredis';

/**
 * ioredis joins the parts of a command into one buffer, a copy that lives until the next garbage collection; this command writes the chunk
 * directly. The chunk must not change before the reply arrives. Measured together with chunks that are filled in place: an API that
 * forwards four bodies of 100 MB at once has 209 to 229 MB resident instead of 239 to 265 (`npm run bench checkpoints`).
 */
export class SetChunkCommand extends Command {
  readonly #head: string;
  readonly #chunk: Buffer;
  readonly #tag: Buffer;
  readonly #tail: string;

  constructor(key: string, chunk: Buffer, tag: Buffer, lifeMs: number) {
    super('set', [key, '', 'PX', lifeMs], { replyEncoding: 'utf8' });
    const life = String(lifeMs);
    this.#head = `*5\r\n$3\r\nset\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n$${chunk.length + tag.length}\r\n`;
    this.#chunk = chunk;
    this.#tag = tag;
    this.#tail = `\r\n$2\r\nPX\r\n$${life.length}\r\n${life}\r\n`;
  }

  /** Called each time the command is sent. The returned string is written last. */
  override toWritable(socket: object): string {
    const stream = socket as Writable;
    stream.write(this.#head);
    stream.write(this.#chunk);
    stream.write(this.#tag);
    return this.#tail;
  }
}
