/** Seconds since 1970; 0 for null. */
export function unixSeconds(date: Date | null): number {
  return date ? Math.floor(date.getTime() / 1000) : 0;
}
