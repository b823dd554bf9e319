export interface SeenDatabase {
  /** The number of times that acknowledged writes may have been lost. */
  readonly losses: number;
  /** Bytes of the write-ahead log; null if the server does not report it. */
  readonly position: number | null;
}

/** What this process knows about the database from its last checks. */
export class RollbackState {
  #seen: SeenDatabase | null = null;
  #lostAt: Date | null = null;
  #isOutgoingHeld = false;
  #hasLoss = false;
  #looking: Promise<void> | null = null;

  get seen(): SeenDatabase | null {
    return this.#seen;
  }

  /** When acknowledged writes may have been lost, within the last day. */
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

  /** Results may arrive out of order. */
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
   * Call this before a write, and the returned function with the write's position after the commit. The write was made in the database that
   * this process knew before; a database without it is at an earlier point.
   */
  beginWrite(): (position: number | null) => void {
    const losses = this.#seen?.losses;
    return (position) => {
      const seen = this.#seen;
      if (!seen || seen.losses !== losses || seen.position === null || position === null) return;
      this.#seen = { losses, position: Math.max(position, seen.position) };
    };
  }

  /** Leases were ended after a loss, but their updates are not cancelled yet. */
  noteLoss(): void {
    this.#hasLoss = true;
  }

  takeLoss(): boolean {
    const hasLoss = this.#hasLoss;
    this.#hasLoss = false;
    return hasLoss;
  }

  checkTogether(look: () => Promise<void>): Promise<void> {
    this.#looking ??= look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }
}
