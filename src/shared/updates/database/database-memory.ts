/** How far a process has seen the database. */
export interface SeenDatabase {
  /** How often acknowledged writes may have been lost. */
  readonly losses: number;
  /** Bytes of the write-ahead log; null: the server does not tell. */
  readonly position: number | null;
}

/** What this process knows about the database from its last looks, and which a database that was put back to an earlier point does not. */
export class DatabaseMemory {
  #seen: SeenDatabase | null = null;
  #lostAt: Date | null = null;
  #looking: Promise<void> | null = null;

  get seen(): SeenDatabase | null {
    return this.#seen;
  }

  /** When acknowledged writes may have been lost; null: not within the last day. */
  get lostAt(): Date | null {
    return this.#lostAt;
  }

  /** Looks may arrive in another order than they were made. */
  remember({ losses, lostAt, position }: SeenDatabase & { readonly lostAt: Date | null }): void {
    const seen = this.#seen;
    if (seen && losses < seen.losses) return;
    const before = seen?.losses === losses ? seen.position : null;
    this.#seen = {
      losses,
      position: position === null || before === null ? (position ?? before) : Math.max(position, before),
    };
    this.#lostAt = lostAt;
  }

  /** Runs `look`, or waits for the one that is running. */
  lookTogether(look: () => Promise<void>): Promise<void> {
    this.#looking ??= look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }
}
