package model_test

import (
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

func TestDeclines(t *testing.T) {
	for text, want := range map[string]bool{
		"I'm sorry, but I can't help with that.":          true,
		"I’m really sorry about the confusion.":           true,
		"Sorry, I have nothing to add.":                   true,
		"I cannot assist with extracting memories.":       true,
		"I am unable to provide that.":                    true,
		"I won't do that.":                                true,
		"As an AI language model, I keep no memories.":    true,
		"抱歉，我无法完成这个任务。":                                   true,
		"我无法提供这些内容。":                                      true,
		"作为一个语言模型，我不能回答这个问题。":                             true,
		"I can't see red and green apart; use dashes.":    false,
		"I cannot deploy on Fridays, the gate is closed.": false,
		"Sorry states are listed in the runbook.":         false,
		"我不能吃花生，点餐时注意。":                                   false,
		"The bot says I'm sorry when it is rate limited.": false,
		"": false,
	} {
		if got := model.Declines(text); got != want {
			t.Errorf("Declines(%q) = %v", text, got)
		}
	}
}
