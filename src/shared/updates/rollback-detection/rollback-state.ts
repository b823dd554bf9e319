/** The latest position of the database that a process has seen. */
export interface SeenDatabase {
  /** How often acknowledged writes may have been lost. */
  readonly losses: number;
  /** Bytes of the write-ahead log; null: the server does not report it. */
  readonly position: number | null;
}

/** What this process knows about the database from its last checks, and what a database restored to an earlier point lacks. */
export class RollbackState {
  #seen: SeenDatabase | null = null;
  #lostAt: Date | null = null;
  #isOutgoingHeld = false;
  #hasLoss = false;
  #looking: Promise<void> | null = null;

  get seen(): SeenDatabase | null {
    return this.#seen;
  }

  /** When acknowledged writes may have been lost; null: not within the last day. */
  get lostAt(): Date | null {
    return this.#lostAt;
  }

  /** Whether webhooks and audit events wait, because the database was restored. */
  get isOutgoingHeld(): boolean {
    return this.#isOutgoingHeld;
  }

  noteOutgoing(isHeld: boolean): void {
    this.#isOutgoingHeld = isHeld;
  }

  /** Results of checks may arrive out of order. */
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

  /**
   * Call it before a write, and what it returns with the write's position when the write is committed: it was in the database that this
   * process knew before, and a database without it is at an earlier point.
   */
  beginWrite(): (position: number | null) => void {
    const losses = this.#seen?.losses;
    return (position) => {
      const seen = this.#seen;
      if (!seen || seen.losses !== losses || seen.position === null || position === null) return;
      this.#seen = { losses, position: Math.max(position, seen.position) };
    };
  }

  /** Leases were ended after a loss, and their updates are not cancelled yet. */
  noteLoss(): void {
    this.#hasLoss = true;
  }

  /** Whether there was a loss since the last call. */
  takeLoss(): boolean {
    const hasLoss = this.#hasLoss;
    this.#hasLoss = false;
    return hasLoss;
  }

  /** Runs `look`, or waits for the check that is running. */
  checkTogether(look: () => Promise<void>): Promise<void> {
    this.#looking ??= look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }
}
