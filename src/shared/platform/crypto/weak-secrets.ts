/** From this project's documentation, in lower case. */
const examples = new Set(['at-least-16-characters-of-randomness', 'another-long-random-string']);
const placeholder =
  /^<.*>$|^(please-?)?(change|replace)[-_ ]?(me|this|it|with)|^(example|placeholder|insert|your)[-_ ]|^hf-(…|\.\.\.|x+)$/;

export function isPlaceholder(text: string): boolean {
  const lower = text.toLowerCase();
  return examples.has(lower) || placeholder.test(lower);
}

/** Returns the end of a sentence; null if the token may be random. */
export function describeWeakToken(token: string): string | null {
  if (isPlaceholder(token)) return 'is one from an example';
  const lower = token.toLowerCase();
  if (new Set(lower).size < 5) return 'has too few different characters';
  if (isRepeated(lower)) return 'repeats a few characters';
  let steps = 0;
  for (let at = 1; at < lower.length; at++) {
    const step = Math.abs(lower.charCodeAt(at) - lower.charCodeAt(at - 1));
    // 9 is the step between the digits 9 and 0.
    if (step <= 1 || step === 9) steps++;
  }
  return steps >= 0.75 * (lower.length - 1) ? 'is a sequence of characters' : null;
}

function isRepeated(text: string): boolean {
  for (let length = 1; length <= 8; length++) {
    if (
      text ===
      text
        .slice(0, length)
        .repeat(Math.ceil(text.length / length))
        .slice(0, text.length)
    )
      return true;
  }
  return false;
}

/** 32 random bytes have about 30 different values. */
export function isWeakKey(key: Buffer): boolean {
  return new Set(key).size < 12;
}
