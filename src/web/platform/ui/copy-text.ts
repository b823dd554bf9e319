import { useState } from 'react';

const copiedMs = 1_500;

/** True for a moment after copying; false: the browser does not permit it. */
export function useCopied(): [boolean | null, (text: string, button: HTMLElement) => Promise<void>] {
  const [isCopied, setIsCopied] = useState<boolean | null>(null);
  const copy = async (text: string, button: HTMLElement): Promise<void> => {
    const copied = await copyText(text, button);
    setIsCopied(copied);
    if (copied) setTimeout(() => setIsCopied(null), copiedMs);
  };
  return [isCopied, copy];
}

/** Returns false if the browser does not permit it. */
async function copyText(text: string, button: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text, button);
  }
}

/**
 * Without TLS, browsers have no clipboard, but can copy the selection. The field is beside the button, because a dialog keeps the focus
 * inside.
 */
function copySelection(text: string, button: HTMLElement): boolean {
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  button.after(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  button.focus();
  return isCopied;
}
