/** The latest position of the database that a process has seen. */
export interface SeenDatabase {
  /** The number of times that acknowledged writes may have been lost. */
  readonly losses: number;
  /** Bytes of the write-ahead log; null if the server does not report it. */
  readonly position: number | null;
}

/** The knowledge of this process about the database from its last checks. Shows whether the database was restored to an earlier point. */
export class RollbackState {
  #seen: SeenDatabase | null = null;
  #lostAt: Date | null = null;
  #isOutgoingHeld = false;
  #hasLoss = false;
  #looking: Promise<void> | null = null;

  get seen(): SeenDatabase | null {
    return this.#seen;
  }

  /** The time when acknowledged writes may have been lost; null if not within the last day. */
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

  /** Remembers the result of a check. Results may arrive out of order. */
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
   * Call this before a write. Call the returned function with the write's position once the write is committed. The write was made in the
   * database that this process knew before; a database without the write is at an earlier point.
   */
  beginWrite(): (position: number | null) => void {
    const losses = this.#seen?.losses;
    return (position) => {
      const seen = this.#seen;
      if (!seen || seen.losses !== losses || seen.position === null || position === null) return;
      this.#seen = { losses, position: Math.max(position, seen.position) };
    };
  }

  /** Notes that leases were ended after a loss. Their updates are not cancelled yet. */
  noteLoss(): void {
    this.#hasLoss = true;
  }

  /** Whether a loss was noted since the last call. */
  takeLoss(): boolean {
    const hasLoss = this.#hasLoss;
    this.#hasLoss = false;
    return hasLoss;
  }

  /** Runs `look`, or waits for the check that is already running. */
  checkTogether(look: () => Promise<void>): Promise<void> {
    this.#looking ??= look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }
}
