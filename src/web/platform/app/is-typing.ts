/** Whether an element takes key presses as text. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Keys must not act on the page behind a dialog or a menu. */
export function hasPopup(): boolean {
  return document.querySelector('[role=dialog],[role=menu]') !== null;
}
